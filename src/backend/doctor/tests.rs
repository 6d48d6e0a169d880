use super::*;
use crate::backend::{
    device::{self, DeviceClass},
    kind::BackendType,
    load::LoadReport,
    probe::{
        child::Step,
        dev::{System as RealOpener, tests::Errno},
        fixture::{Fixture, Gpu},
    },
    registry::tests::loaded_pack,
};

fn cpu() -> DeviceInfo {
    device::tests::device(BackendType::Cpu, 0, DeviceClass::Cpu)
}

fn hip(gfx: &str) -> DeviceInfo {
    let mut info = device::tests::device(BackendType::Hip, 0, DeviceClass::Discrete);
    info.gfx = gfx.parse().ok();
    info
}

struct Case {
    machine: Fixture,
    variables: Vec<(&'static str, &'static str)>,
    devices: Vec<DeviceInfo>,
    report: LoadReport,
    errno: Option<i32>,
    trials: Vec<(DeviceInfo, Trial)>,
}

impl Case {
    fn new(machine: Fixture, devices: Vec<DeviceInfo>, report: LoadReport) -> Case {
        Case {
            machine,
            variables: Vec::new(),
            devices,
            report,
            errno: None,
            trials: Vec::new(),
        }
    }

    /// A healthy RX 7900 with a ROCm 7 pack.
    fn healthy() -> Case {
        let machine = Fixture::new().kfd_cpu(0).gpu(1, &Gpu::rx7900());
        machine.write("pack/libamdhip64.so.7.2.70204", "");
        machine.write("pack/librocblas.so.5", "");
        machine.write("pack/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "");
        let report = loaded_pack(&["gfx1100"], machine.path("pack"));
        Case::new(machine, vec![cpu(), hip("gfx1100")], report)
    }

    fn examine(&self) -> Report {
        let host = self.machine.host(&self.variables);
        let inventory = Inventory {
            devices: self.devices.clone(),
            report: self.report.clone(),
            gpus: host.gpus(),
        };
        let injected = self.errno.map(Errno);
        examine(&Subject {
            host: &host,
            inventory: &inventory,
            opener: match &injected {
                Some(opener) => opener,
                None => &RealOpener,
            },
            trials: self.trials.clone(),
        })
    }

    fn finding(&self, id: &str) -> Finding {
        let report = self.examine();
        report
            .findings
            .into_iter()
            .find(|finding| finding.id == id)
            .unwrap_or_else(|| panic!("no check {id}"))
    }
}

#[test]
fn a_machine_without_gpus_is_well() {
    let case = Case::new(
        Fixture::new().kfd_cpu(0),
        vec![cpu()],
        LoadReport::default(),
    );
    let report = case.examine();
    assert_eq!(report.exit_code(), 0, "{report}");
    assert_eq!(report.findings.len(), 14);
    assert!(
        report
            .findings
            .iter()
            .filter(|f| f.outcome == Outcome::Skip)
            .count()
            >= 8
    );
}

#[test]
fn a_healthy_machine_is_well() {
    let case = Case::healthy();
    let report = case.examine();
    assert_eq!(report.exit_code(), 0, "{report}");
    assert!(
        report.to_string().contains("node 1, gfx1100, discrete"),
        "{report}"
    );
}

#[test]
fn closed_doors_name_the_group() {
    let mut case = Case::healthy();
    case.errno = Some(13);
    let report = case.examine();
    assert_eq!(report.exit_code(), 2);
    let kfd = case.finding("kfd");
    assert_eq!(kfd.outcome, Outcome::Fail);
    assert!(kfd.fix.unwrap().contains("usermod"));
    case.machine.write(".dockerenv", "");
    assert!(case.finding("kfd").fix.unwrap().contains("--group-add"));
}

#[test]
fn a_container_with_one_of_two_gpus_is_a_warning() {
    let mut second = Gpu::rx7900();
    second.pci = "0000:83:00.0";
    second.render_minor = 129;
    let mut case = Case::healthy();
    case.machine = Fixture::new().gpu(1, &Gpu::rx7900()).gpu(2, &second);
    case.machine.remove("dev/dri/renderD129");
    assert_eq!(case.finding("render-nodes").outcome, Outcome::Fail);
    case.machine.write(".dockerenv", "");
    let finding = case.finding("render-nodes");
    assert_eq!(finding.outcome, Outcome::Warn);
    assert!(finding.fix.unwrap().contains("renderD129"));
}

#[test]
fn wrong_drivers_and_missing_nodes() {
    let case = Case::healthy();
    let pci = "sys/bus/pci/devices/0000:03:00.0";
    case.machine.remove(&format!("{pci}/driver"));
    let finding = case.finding("amdgpu");
    assert_eq!(finding.outcome, Outcome::Fail);
    assert!(finding.fix.unwrap().contains("modprobe"));
    case.machine
        .remove("sys/class/kfd/kfd/topology/nodes/1/properties");
    let topology = case.finding("topology");
    assert_eq!(topology.outcome, Outcome::Warn);
    assert!(topology.evidence[0].contains("no KFD node"));
}

#[test]
fn a_pack_without_kernels_for_the_gpu_fails() {
    let mut case = Case::healthy();
    case.report = loaded_pack(&["gfx1151"], case.machine.path("pack"));
    let finding = case.finding("targets");
    assert_eq!(finding.outcome, Outcome::Fail);
    assert!(finding.evidence[0].contains("gfx1100") && finding.evidence[0].contains("gfx1151"));
}

#[test]
fn blas_without_kernels_fails_and_hipblaslt_alone_is_said() {
    let case = Case::healthy();
    case.machine
        .remove("pack/rocblas/library/TensileLibrary_lazy_gfx1100.dat");
    case.machine
        .write("pack/rocblas/library/TensileLibrary_lazy_gfx1030.dat", "");
    assert_eq!(case.finding("blas-kernels").outcome, Outcome::Fail);
    case.machine.write("pack/libhipblaslt.so.1", "");
    case.machine.write("pack/hipblaslt/library/gfx1100.dat", "");
    let finding = case.finding("blas-kernels");
    assert_eq!(finding.outcome, Outcome::Ok);
    assert!(finding.evidence.last().unwrap().contains("hipBLASLt has"));
}

#[test]
fn a_plugin_that_does_not_load_gives_the_loaders_text_and_the_rocm_it_needs() {
    let mut case = Case::healthy();
    case.devices = vec![cpu()];
    let attempt = &mut case.report.attempts[0];
    attempt.registry = None;
    attempt.error = Some(
        "the loader says: libamdhip64.so.7: cannot open shared object file: No such file".into(),
    );
    let finding = case.finding("plugins");
    assert_eq!(finding.outcome, Outcome::Fail);
    assert!(finding.evidence[0].contains("libamdhip64.so.7: cannot open"));
    assert!(finding.fix.unwrap().contains("ROCm 7"));
}

#[test]
fn no_cpu_backend_is_fatal() {
    let case = Case::new(Fixture::new(), Vec::new(), LoadReport::default());
    assert_eq!(case.finding("plugins").outcome, Outcome::Fail);
}

#[test]
fn two_rocm_majors_are_a_warning() {
    let mut case = Case::healthy();
    case.machine.write("old/libamdhip64.so.6.4.60401", "");
    case.variables.push(("LD_LIBRARY_PATH", "/old"));
    let finding = case.finding("runtime");
    assert_eq!(finding.outcome, Outcome::Warn);
    assert!(
        finding
            .evidence
            .iter()
            .any(|line| line.contains("/old") && line.contains("wins"))
    );
}

#[test]
fn a_small_ttm_limit_is_a_warning_on_integrated_gpus_only() {
    for (gpu, outcome) in [
        (Gpu::strix_halo(), Outcome::Warn),
        (Gpu::rx7900(), Outcome::Ok),
    ] {
        let machine = Fixture::new().gpu(1, &gpu);
        machine.write(
            "proc/meminfo",
            "MemTotal: 131072000 kB\nMemAvailable: 100000000 kB\n",
        );
        machine.write("sys/module/ttm/parameters/pages_limit", "4000000");
        let case = Case::new(machine, vec![cpu()], LoadReport::default());
        let finding = case.finding("memory");
        assert_eq!(finding.outcome, outcome);
        if outcome == Outcome::Warn {
            assert!(finding.fix.unwrap().contains("ttm.pages_limit=24576000"));
        }
    }
}

#[test]
fn known_faults_use_the_packs_rocm() {
    let machine = Fixture::new().gpu(1, &Gpu::strix_halo());
    machine.write("proc/sys/kernel/osrelease", "6.8.0-60-generic");
    let report = loaded_pack(&["gfx1151"], machine.path("pack"));
    let case = Case::new(machine, vec![cpu(), hip("gfx1151")], report);
    let finding = case.finding("known-faults");
    assert_eq!(finding.outcome, Outcome::Warn);
    assert!(
        finding
            .evidence
            .iter()
            .any(|line| line.contains("older kernels"))
    );
    // 7.2.4 is newer than 6.4.2.
    assert!(
        !finding
            .evidence
            .iter()
            .any(|line| line.contains("before ROCm 6.4.2"))
    );
}

#[test]
fn the_runtimes_file_name_tells_the_version() {
    let case = Case::healthy();
    let host = case.machine.host(&[]);
    let inventory = Inventory {
        devices: Vec::new(),
        report: LoadReport::default(),
        gpus: Vec::new(),
    };
    let subject = Subject {
        host: &host,
        inventory: &inventory,
        opener: &RealOpener,
        trials: Vec::new(),
    };
    let libraries = libraries::libraries(&host, &[case.machine.path("pack")]);
    assert_eq!(
        software::rocm_version(&subject, &libraries).as_deref(),
        Some("7.2.4")
    );
    assert_eq!(software::rocm_version(&subject, &[]), None);
}

#[test]
fn trials_that_crash_fail_and_those_that_pass_say_what_they_saw() {
    let mut case = Case::healthy();
    assert_eq!(case.finding("trial").outcome, Outcome::Skip);
    let passed = Trial {
        steps: vec![Step {
            step: "canary".into(),
            ok: true,
            detail: "largest error 1e-6".into(),
        }],
        end: End::Passed,
    };
    case.trials = vec![(cpu(), passed.clone())];
    assert!(case.finding("trial").evidence[0].contains("1e-6"));
    let crashed = Trial {
        steps: Vec::new(),
        end: End::Crashed {
            reason: "signal: 6 (SIGABRT) in step product".into(),
        },
    };
    case.trials = vec![(cpu(), passed), (hip("gfx1100"), crashed)];
    let finding = case.finding("trial");
    assert_eq!(finding.outcome, Outcome::Fail);
    assert!(finding.evidence[1].contains("hip:0: signal: 6"));
}

#[test]
fn the_bundle_hides_names() {
    let mut case = Case::healthy();
    case.report.attempts[0].path = "/home/somebody/packs/libggml-hip.so".into();
    let report = case.examine();
    let host = case
        .machine
        .host(&[("HOME", "/home/somebody"), ("USER", "somebody")]);
    assert!(report.to_string().contains("somebody"));
    let bundle = report.bundle(&host);
    assert!(
        !bundle.contains("somebody") && bundle.contains("~/packs"),
        "{bundle}"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["findings"][0]["id"], "system");
}
