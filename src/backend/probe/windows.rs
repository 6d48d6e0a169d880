//! Windows has no sysfs: what to look at there instead, as a table, and the part of it that is
//! plain files.
use super::Host;
use crate::backend::pack::natural_key;
use serde::Serialize;

/// One thing to look at on Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Short name.
    pub id: &'static str,
    /// What is asked.
    pub question: &'static str,
    /// A PowerShell line that answers it.
    pub command: &'static str,
    /// What a good answer looks like.
    pub good: &'static str,
    /// What to do about a bad one.
    pub fix: &'static str,
}

/// The checks in order.
pub static CHECKS: [Check; 7] = [
    Check {
        id: "windows",
        question: "Which Windows is it?",
        command: "(Get-CimInstance Win32_OperatingSystem).Version",
        good: "10.0.22000 or newer (Windows 11), which AMD's HIP supports",
        fix: "use --device vulkan on Windows 10",
    },
    Check {
        id: "adapter",
        question: "Is there an AMD GPU and does its driver work?",
        command: "Get-CimInstance Win32_VideoController | Where-Object PNPDeviceID -like 'PCI\\VEN_1002*' | Select-Object Name, DriverVersion, ConfigManagerErrorCode",
        good: "ConfigManagerErrorCode 0",
        fix: "install AMD Software: Adrenalin Edition",
    },
    Check {
        id: "memory",
        question: "How much video memory has it?",
        command: "Get-ItemProperty 'HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Class\\{4d36e968-e325-11ce-bfc1-08002be10318}\\0*' | Select-Object DriverDesc, 'HardwareInformation.qwMemorySize'",
        good: "the size on the box; AdapterRAM has 32 bits and is wrong from 4 GiB on",
        fix: "for an integrated GPU set its memory in the firmware to a fixed size instead of Auto",
    },
    Check {
        id: "runtime",
        question: "Which HIP runtime does the driver bring?",
        command: "Get-Item $env:SystemRoot\\System32\\amdhip64*.dll | Select-Object Name, @{n='Version';e={$_.VersionInfo.FileVersion}}",
        good: "amdhip64_7.dll for a ROCm 7 pack, amdhip64_6.dll for a ROCm 6 pack",
        fix: "update the driver; it brings the runtime",
    },
    Check {
        id: "copies",
        question: "Does another copy win the search?",
        command: "where.exe amdhip64_7.dll amdhip64_6.dll hipblas.dll rocblas.dll hipblaslt.dll",
        good: "the pack's own folder first, System32 after it",
        fix: "take old SDK folders out of PATH",
    },
    Check {
        id: "sdk",
        question: "Which HIP SDKs are installed?",
        command: "$env:HIP_PATH; Get-ChildItem 'C:\\Program Files\\AMD\\ROCm' -ErrorAction SilentlyContinue",
        good: "none is needed to run; building needs one",
        fix: "compare versions as numbers: 10.1 is newer than 7.2",
    },
    Check {
        id: "gfx",
        question: "Which instruction set has the GPU?",
        command: "& \"$env:HIP_PATH\\bin\\amdgpu-arch.exe\"",
        good: "a name in the pack's gfx_targets",
        fix: "use a pack with that target, or --device vulkan; HSA_OVERRIDE_GFX_VERSION has no effect on Windows",
    },
];

/// The HIP runtimes in `System32`, newest first, by the number in their names; `root` is the
/// Windows folder.
pub fn runtimes(host: &Host, root: &str) -> Vec<String> {
    let mut found: Vec<String> = host
        .names(&format!("{root}/System32"))
        .into_iter()
        .filter(|name| {
            let lower = name.to_ascii_lowercase();
            lower.starts_with("amdhip64") && lower.ends_with(".dll")
        })
        .collect();
    found.sort_by_key(|name| std::cmp::Reverse(natural_key(&name.to_ascii_lowercase())));
    found
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn runtimes_are_found_newest_first() {
        let machine = Fixture::new();
        for name in [
            "amdhip64_6.dll",
            "amdhip64_10.dll",
            "AMDHIP64_7.DLL",
            "amdhip64.txt",
            "kernel32.dll",
        ] {
            machine.write(&format!("Windows/System32/{name}"), "");
        }
        assert_eq!(
            runtimes(&machine.host(&[]), "/Windows"),
            ["amdhip64_10.dll", "AMDHIP64_7.DLL", "amdhip64_6.dll"]
        );
    }

    #[test]
    fn every_check_is_complete_and_named_once() {
        let mut ids: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), CHECKS.len());
        for check in CHECKS {
            assert!(check.question.ends_with('?'), "{}", check.id);
            assert!(!check.command.is_empty() && !check.good.is_empty() && !check.fix.is_empty());
        }
    }
}
