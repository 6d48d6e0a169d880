//! AMD GPU targets: reading a list, and finding those of the machine.

use super::{
    machine::{Machine, Os},
    rocm::Rocm,
};
use anyhow::{Result, bail};

/// Targets that ggml's HIP backend can be compiled for (external/ggml/cmake/checks.cmake has the
/// same list).
pub const KNOWN: [&str; 26] = [
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1011", "gfx1012",
    "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100",
    "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200",
    "gfx1201",
];

/// The release list: `all`.
pub const RELEASE: [&str; 9] = [
    "gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200",
    "gfx1201",
];

/// The targets that `text` asks for: names between `;`, `,` or spaces, `all`, or `auto`.
pub fn targets(text: &str, machine: &Machine, rocm: &Rocm) -> Result<Vec<String>> {
    let found = match text.trim() {
        "all" => RELEASE.map(str::to_owned).to_vec(),
        "auto" => of_machine(machine, rocm)?,
        list => list
            .split([';', ',', ' '])
            .filter(|name| !name.is_empty())
            .map(|name| name.to_ascii_lowercase())
            .collect(),
    };
    if found.is_empty() {
        bail!("--gpu-targets names no GPU; expected for example \"gfx1100;gfx1151\"");
    }
    let mut unique: Vec<String> = Vec::new();
    for name in found {
        let plain = name.split(':').next().unwrap_or_default();
        if !KNOWN.contains(&plain) {
            bail!("unknown GPU target `{name}`; known: {}", KNOWN.join(", "));
        }
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    Ok(unique)
}

/// The GPUs in this machine, from ROCm's own tool or the kernel.
fn of_machine(machine: &Machine, rocm: &Rocm) -> Result<Vec<String>> {
    let tool = ["llvm/bin", "lib/llvm/bin", "bin"]
        .map(|dir| format!("{}/{dir}/{}", rocm.path, machine.exe("amdgpu-arch")))
        .into_iter()
        .find(|path| machine.is_file(path));
    let printed = tool.and_then(|tool| machine.ask(&tool, &[]));
    let mut found: Vec<String> = printed
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.trim().to_owned())
        .filter(|line| line.starts_with("gfx"))
        .collect();
    if found.is_empty() && machine.os == Os::Linux {
        found = from_kernel(machine);
    }
    if found.is_empty() {
        bail!(
            "no AMD GPU was found to build for; name the target, for example --gpu-targets gfx1100 \
             (docs/hip.md lists them), or `all`"
        );
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// `gfx_target_version` of each node: major * 10000 + minor * 100 + stepping, 0 for processors.
fn from_kernel(machine: &Machine) -> Vec<String> {
    let nodes = "/sys/class/kfd/kfd/topology/nodes";
    machine
        .list(nodes)
        .iter()
        .filter_map(|node| machine.read(&format!("{nodes}/{node}/properties")))
        .filter_map(|properties| {
            let value = properties.lines().find_map(|line| {
                let (key, value) = line.split_once(' ')?;
                (key == "gfx_target_version").then(|| value.trim().parse::<u32>().ok())?
            })?;
            let (major, minor, stepping) = (value / 10_000, value / 100 % 100, value % 100);
            (major > 0 && minor < 16 && stepping < 16)
                .then(|| format!("gfx{major}{minor:x}{stepping:x}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::machine::fake::FakeMachine, *};

    fn rocm() -> Rocm {
        Rocm {
            path: "/opt/rocm".into(),
            version: "7.2.4".into(),
            found_by: "test".into(),
        }
    }

    fn read(text: &str, fake: &FakeMachine) -> Result<Vec<String>> {
        targets(text, &fake.machine, &rocm())
    }

    #[test]
    fn lists_are_read_checked_and_made_unique() {
        let fake = FakeMachine::new(Os::Linux);
        assert_eq!(
            read("gfx1100;gfx1151, GFX1100 gfx90a:xnack-", &fake).unwrap(),
            ["gfx1100", "gfx1151", "gfx90a:xnack-"]
        );
        assert_eq!(read("all", &fake).unwrap(), RELEASE);
        let error = read("gfx1100;gfx1999", &fake).unwrap_err().to_string();
        assert!(
            error.contains("`gfx1999`") && error.contains("gfx1201"),
            "{error}"
        );
        assert!(read(";", &fake).is_err());
    }

    #[test]
    fn auto_asks_rocm_then_the_kernel() {
        let node = |n: u32| format!("/sys/class/kfd/kfd/topology/nodes/{n}/properties");
        let fake = FakeMachine::new(Os::Linux)
            .file(&node(0), "simd_count 0\ngfx_target_version 0\n")
            .file(&node(1), "gfx_target_version 110501\n")
            .file(
                &node(2),
                "not_gfx_target_version 110000\ngfx_target_version 90010\n",
            );
        assert_eq!(read("auto", &fake).unwrap(), ["gfx1151", "gfx90a"]);
        let fake = fake.file("/opt/rocm/llvm/bin/amdgpu-arch", "").answer(
            "/opt/rocm/llvm/bin/amdgpu-arch",
            "gfx1200\ngfx1036\ngfx1200\n",
        );
        assert_eq!(read("auto", &fake).unwrap(), ["gfx1036", "gfx1200"]);
        let error = read("auto", &FakeMachine::new(Os::Windows)).unwrap_err();
        assert!(error.to_string().contains("--gpu-targets"), "{error}");
    }

    #[test]
    fn cmake_has_the_same_list() {
        let path = crate::sh::root().join("external/ggml/cmake/checks.cmake");
        let text = std::fs::read_to_string(path).unwrap();
        let list = text
            .split_once("set(AUDIOCPP_GFX_TARGETS")
            .and_then(|(_, rest)| rest.split_once(')'))
            .unwrap()
            .0;
        assert_eq!(list.split_whitespace().collect::<Vec<_>>(), KNOWN);
    }
}
