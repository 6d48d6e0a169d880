//! Visual Studio: finding it, the build tools inside it, and entering its compiler environment.

use super::machine::{Machine, version_key};
use anyhow::{Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;

/// A Visual Studio or Build Tools installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VisualStudio {
    /// Its folder.
    pub path: String,
    /// The MSVC toolsets in it, oldest first, such as 14.44.35207.
    pub toolsets: Vec<String>,
}

/// The newest installation that has a C++ toolset: by vswhere, else in the usual folders.
pub fn find(machine: &Machine) -> Option<VisualStudio> {
    let mut paths = Vec::new();
    let programs = machine
        .var("ProgramFiles(x86)")
        .unwrap_or_else(|| "C:/Program Files (x86)".into());
    let vswhere = format!("{programs}/Microsoft Visual Studio/Installer/vswhere.exe");
    if machine.is_file(&vswhere) {
        let args = ["-latest", "-products", "*", "-property", "installationPath"];
        if let Some(text) = machine.ask(&vswhere, &args) {
            paths.extend(text.lines().map(|line| line.trim().replace('\\', "/")));
        }
    }
    for root in [
        "C:/Program Files/Microsoft Visual Studio",
        "C:/Program Files (x86)/Microsoft Visual Studio",
    ] {
        let mut years = machine.list(root);
        years.sort_by_key(|year| std::cmp::Reverse(version_key(year)));
        for year in years {
            for edition in machine.list(&format!("{root}/{year}")) {
                paths.push(format!("{root}/{year}/{edition}"));
            }
        }
    }
    paths.into_iter().find_map(|path| {
        let mut toolsets = machine.list(&format!("{path}/VC/Tools/MSVC"));
        toolsets.sort_by_key(|name| version_key(name));
        (!toolsets.is_empty()).then_some(VisualStudio { path, toolsets })
    })
}

impl VisualStudio {
    /// CMake or ninja as Visual Studio bundles them.
    pub fn tool(&self, name: &str, machine: &Machine) -> Option<String> {
        let tools = format!("{}/Common7/IDE/CommonExtensions/Microsoft/CMake", self.path);
        ["CMake/bin", "Ninja"]
            .iter()
            .map(|dir| format!("{tools}/{dir}/{name}.exe"))
            .find(|path| machine.is_file(path))
    }

    /// The command that prints the environment of a toolset: the newest, or the one that is asked
    /// for by the beginning of its version.
    pub fn environment_command(&self, version: Option<&str>) -> Result<String> {
        let chosen = version.map(|wanted| {
            let wanted_key = version_key(wanted);
            let found = self
                .toolsets
                .iter()
                .any(|name| version_key(name).starts_with(&wanted_key));
            (wanted, found)
        });
        let argument = match chosen {
            None => String::new(),
            Some((wanted, true)) => format!(" -vcvars_ver={wanted}"),
            Some((wanted, false)) => bail!(
                "no MSVC toolset {wanted} in {}; there are {}; the Visual Studio Installer has others",
                self.path,
                self.toolsets.join(", ")
            ),
        };
        Ok(format!(
            "\"{}/VC/Auxiliary/Build/vcvarsall.bat\" x64{argument} >nul && set",
            self.path
        ))
    }
}

/// What `set` printed, as variables.
pub fn parse_environment(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.trim_end().split_once('='))
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A device function beside the standard maths header: enough to bring out the clash between HIP's
/// clang headers and recent MSVC libraries (isless and isgreater declared twice).
pub const TRIAL_SOURCE: &str = "\
#include <cmath>
#include <hip/hip_runtime.h>
__global__ void trial(float * x) { x[0] = std::isless(x[0], x[1]) ? 1.0f : 0.0f; }
int main() { return 0; }
";

/// What to do about a trial compile that failed with this output.
pub fn trial_advice(output: &str, toolsets: &[String]) -> String {
    let clash = output.contains("isless")
        || output.contains("isgreater")
        || output.contains("__clang_cuda_math_forward_declares");
    if clash {
        format!(
            "MSVC's standard library and HIP's clang headers clash here. Build with an older toolset: \
             --vcvars-ver 14.44 (there are {}); the Visual Studio Installer has older v143 toolsets",
            toolsets.join(", ")
        )
    } else {
        format!("the HIP compiler cannot compile a small program:\n{output}")
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::machine::{Os, fake::FakeMachine},
        *,
    };

    const VS: &str = "C:/Program Files/Microsoft Visual Studio/18/Community";

    #[test]
    fn visual_studio_and_its_tools_are_found() {
        let cmake =
            format!("{VS}/Common7/IDE/CommonExtensions/Microsoft/CMake/CMake/bin/cmake.exe");
        let ninja = format!("{VS}/Common7/IDE/CommonExtensions/Microsoft/CMake/Ninja/ninja.exe");
        let fake = FakeMachine::new(Os::Windows)
            .file(&format!("{VS}/VC/Tools/MSVC/14.51.36000/x"), "")
            .file(&format!("{VS}/VC/Tools/MSVC/14.9.1/x"), "")
            .file(&cmake, "")
            .file(&ninja, "");
        let found = find(&fake.machine).unwrap();
        assert_eq!(found.path, VS);
        assert_eq!(found.toolsets, ["14.9.1", "14.51.36000"]);
        assert_eq!(found.tool("cmake", &fake.machine), Some(cmake));
        assert_eq!(found.tool("ninja", &fake.machine), Some(ninja));
        assert_eq!(find(&FakeMachine::new(Os::Windows).machine), None);
        let command = found.environment_command(Some("14.51")).unwrap();
        assert!(
            command.contains("vcvarsall.bat\" x64 -vcvars_ver=14.51 "),
            "{command}"
        );
        let error = found
            .environment_command(Some("14.44"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("14.44") && error.contains("14.51.36000"),
            "{error}"
        );
    }

    #[test]
    fn vswhere_comes_first() {
        let vswhere = "C:/Program Files (x86)/Microsoft Visual Studio/Installer/vswhere.exe";
        let fake = FakeMachine::new(Os::Windows)
            .file(vswhere, "")
            .file("D:/BuildTools/VC/Tools/MSVC/14.44.35207/x", "")
            .file(&format!("{VS}/VC/Tools/MSVC/14.51.1/x"), "")
            .answer(
                &format!("{vswhere} -latest -products * -property installationPath"),
                "D:\\BuildTools\r\n",
            );
        assert_eq!(find(&fake.machine).unwrap().path, "D:/BuildTools");
    }

    #[test]
    fn environment_and_advice() {
        let set = parse_environment("INCLUDE=C:\\a;C:\\b\r\n=C:=C:\\\r\nX=1=2\r\n");
        assert_eq!(set.len(), 2);
        assert_eq!(set["X"], "1=2");
        let clash = "error: __device__ function 'isgreater' cannot overload";
        assert!(trial_advice(clash, &["14.51".into()]).contains("--vcvars-ver 14.44"));
        assert!(trial_advice("no such file", &[]).contains("no such file"));
    }
}
