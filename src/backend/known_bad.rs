//! Combinations of GPU, ROCm and kernel that others have reported to fail.
//!
//! Nothing here was measured by this project: each row names its source and says "reported".
use super::{gfx::Gfx, pack::natural_key, probe::system::kernel_version};
use serde::Serialize;

/// Raised whenever a row changes, so that a report says which table it used.
pub const TABLE_VERSION: u32 = 1;

/// What must be true of a machine for a row to apply.
#[derive(Clone, Copy, Debug)]
enum When {
    /// ROCm is older than this.
    RocmBelow(&'static str),
    /// ROCm is this version or within this series.
    RocmSeries(&'static str),
    /// The kernel is older than this.
    KernelBelow(u32, u32, u32),
    /// Always.
    Always,
}

/// One report.
struct Row {
    targets: &'static [&'static str],
    when: When,
    text: &'static str,
    fix: &'static str,
    source: &'static str,
}

static ROWS: [Row; 13] = [
    Row {
        targets: &["gfx1150", "gfx1151"],
        when: When::RocmBelow("6.4.2"),
        text: "hipBLASLt has no kernels for it before ROCm 6.4.2",
        fix: "use a pack with ROCm 6.4.2 or newer",
        source: "hipBLASLt changelog",
    },
    Row {
        targets: &["gfx1100", "gfx1101", "gfx1102", "gfx1103"],
        when: When::RocmBelow("6.2"),
        text: "hipBLASLt has no kernels for it before ROCm 6.2",
        fix: "use a pack with ROCm 6.2 or newer",
        source: "hipBLASLt changelog",
    },
    Row {
        targets: &["gfx1200", "gfx1201"],
        when: When::RocmBelow("6.3"),
        text: "ROCm before 6.3 does not know it",
        fix: "use a pack with ROCm 6.3 or newer",
        source: "AMDMIGraphX#3517",
    },
    Row {
        targets: &["gfx950"],
        when: When::RocmBelow("7.0"),
        text: "ROCm before 7.0 does not know it",
        fix: "use a pack with ROCm 7.0 or newer",
        source: "hipBLASLt changelog",
    },
    Row {
        targets: &["gfx1151"],
        when: When::KernelBelow(6, 17, 0),
        text: "older kernels hang or fault on it",
        fix: "use kernel 6.18.4 or newer, or Ubuntu's 6.17",
        source: "llamacpp-rocm#99",
    },
    Row {
        targets: &["gfx1151"],
        when: When::RocmSeries("7.14"),
        text: "wrong results after an update from ROCm 7.2.1",
        fix: "run audiocpp_cli check; if it fails, use another pack or Vulkan",
        source: "ROCm#6513",
    },
    Row {
        targets: &["gfx1150", "gfx1151"],
        when: When::Always,
        text: "versions of ggml that compute on host buffers of integrated GPUs gave wrong numbers without an error",
        fix: "keep to the packs of this release, whose ggml does not; run audiocpp_cli check",
        source: "llama.cpp#28211",
    },
    Row {
        targets: &["gfx1103"],
        when: When::Always,
        text: "rocBLAS has no kernels for it",
        fix: "use a pack with the hipBLASLt route, or Vulkan; do not rename another target's files",
        source: "llama.cpp#11913",
    },
    Row {
        targets: &["gfx1152"],
        when: When::Always,
        text: "many builds leave it out and end in a memory fault",
        fix: "use a pack that lists gfx1152",
        source: "llama.cpp#19949",
    },
    Row {
        targets: &[],
        when: When::RocmSeries("7.1"),
        text: "virtual memory management fails with an invalid argument",
        fix: "use a plugin built with GGML_HIP_NO_VMM=ON, the default here",
        source: "llama.cpp#18650",
    },
    Row {
        targets: &["gfx1201"],
        when: When::RocmSeries("7.2.4"),
        text: "virtual memory management aborts although it is said to be there",
        fix: "use a plugin built with GGML_HIP_NO_VMM=ON, the default here",
        source: "llama.cpp#26054",
    },
    Row {
        targets: &["gfx1201"],
        when: When::Always,
        text: "hipBLASLt answers some very long, thin products with zeros",
        fix: "run audiocpp_cli check; AUDIOCPP_BLASLT=0 turns the route off",
        source: "rocm-libraries#5706",
    },
    Row {
        targets: &["gfx1103", "gfx1151"],
        when: When::RocmBelow("7.2"),
        text: "programs hang or fault at their end or at allocation",
        fix: "use a pack with ROCm 7.2 or newer",
        source: "hipfire#81, mlx#2300",
    },
];

/// A row that applies to a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The instruction set it applies to.
    pub gfx: Gfx,
    /// What was reported.
    pub text: &'static str,
    /// What helps.
    pub fix: &'static str,
    /// Where it was reported.
    pub source: &'static str,
}

/// The rows that apply to a GPU with this ROCm version and kernel release; an unknown version
/// matches no condition on it.
pub fn reports(gfx: Gfx, rocm: Option<&str>, kernel: Option<&str>) -> Vec<Report> {
    let name = gfx.to_string();
    ROWS.iter()
        .filter(|row| row.targets.is_empty() || row.targets.contains(&name.as_str()))
        .filter(|row| applies(row.when, rocm, kernel))
        .map(|row| Report {
            gfx,
            text: row.text,
            fix: row.fix,
            source: row.source,
        })
        .collect()
}

fn applies(when: When, rocm: Option<&str>, kernel: Option<&str>) -> bool {
    match when {
        When::Always => true,
        When::RocmBelow(limit) => rocm.is_some_and(|found| natural_key(found) < natural_key(limit)),
        When::RocmSeries(series) => rocm.is_some_and(|found| {
            found == series
                || found
                    .strip_prefix(series)
                    .is_some_and(|rest| rest.starts_with('.'))
        }),
        When::KernelBelow(major, minor, patch) => kernel
            .and_then(kernel_version)
            .is_some_and(|found| found < (major, minor, patch)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(gfx: &str, rocm: Option<&str>, kernel: Option<&str>) -> Vec<&'static str> {
        reports(gfx.parse().unwrap(), rocm, kernel)
            .iter()
            .map(|report| report.source)
            .collect()
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(texts("gfx1151", Some("6.4.1"), None).contains(&"hipBLASLt changelog"));
        assert!(!texts("gfx1151", Some("6.4.2"), None).contains(&"hipBLASLt changelog"));
        assert!(!texts("gfx1151", Some("10.1"), None).contains(&"hipBLASLt changelog"));
        assert!(texts("gfx1100", Some("7.1.1"), None).contains(&"llama.cpp#18650"));
        assert!(!texts("gfx1100", Some("7.14"), None).contains(&"llama.cpp#18650"));
        assert!(texts("gfx1151", Some("7.14.0"), None).contains(&"ROCm#6513"));
    }

    #[test]
    fn kernels_and_the_unknown() {
        assert!(texts("gfx1151", None, Some("6.8.0-60-generic")).contains(&"llamacpp-rocm#99"));
        assert!(!texts("gfx1151", None, Some("6.17.0-40-generic")).contains(&"llamacpp-rocm#99"));
        assert!(texts("gfx1100", None, None).is_empty());
    }

    #[test]
    fn every_row_is_whole() {
        for row in &ROWS {
            assert!(!row.text.is_empty() && !row.fix.is_empty() && !row.source.is_empty());
            for target in row.targets {
                assert!(target.parse::<Gfx>().is_ok(), "{target}");
            }
        }
    }
}
