//! Checks of the operating system, the driver, the device files and the environment.
use super::{Facts, Finding, Outcome};
use crate::backend::{
    memory::human,
    probe::{
        env::{self, Weight},
        system::is_wsl,
        windows,
    },
};

pub(super) fn system(facts: &Facts<'_>) -> Finding {
    let system = &facts.system;
    let mut line = system.name.clone();
    if let Some(kernel) = &system.kernel {
        line = format!("{line}, kernel {kernel}");
    }
    let mut finding = Finding::new("system", Outcome::Ok, vec![line]);
    if let Some(container) = &system.container {
        finding
            .evidence
            .push(format!("in a container: {container}"));
    }
    if is_wsl(facts.subject.host) {
        finding
            .evidence
            .push("WSL: GPUs come through /dev/dxg, without the files checked below".into());
    }
    if cfg!(windows) {
        let root = facts
            .subject
            .host
            .variable("SystemRoot")
            .unwrap_or("C:\\Windows");
        let runtimes = windows::runtimes(facts.subject.host, root);
        finding
            .evidence
            .push(format!("HIP runtimes in System32: {}", list(&runtimes)));
        for check in windows::CHECKS {
            finding.evidence.push(format!(
                "{}: {} (good: {})",
                check.question, check.command, check.good
            ));
        }
    }
    finding
}

fn list(texts: &[String]) -> String {
    match texts {
        [] => "none".to_owned(),
        _ => texts.join(", "),
    }
}

pub(super) fn pci(facts: &Facts<'_>) -> Finding {
    let gpus = &facts.subject.inventory.gpus;
    let evidence: Vec<String> = gpus
        .iter()
        .map(|gpu| {
            let name = gpu.product.as_deref().unwrap_or("GPU");
            format!("{} {name} [{:04x}:{:04x}]", gpu.pci, gpu.vendor, gpu.device)
        })
        .collect();
    if evidence.is_empty() {
        return Finding::skip("pci", "no GPU on the PCI bus");
    }
    Finding::new("pci", Outcome::Ok, evidence)
}

pub(super) fn driver(facts: &Facts<'_>) -> Finding {
    const ID: &str = "amdgpu";
    if let Some(skip) = facts.without_amd(ID) {
        return skip;
    }
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    for gpu in &facts.amd {
        match gpu.driver.as_deref() {
            Some("amdgpu") => finding.evidence.push(format!("{}: driver amdgpu", gpu.pci)),
            Some(other) => {
                finding
                    .evidence
                    .push(format!("{}: driver {other}", gpu.pci));
                let fix = format!("bind {} to amdgpu instead of {other}", gpu.pci);
                finding.worsen(Outcome::Fail, fix);
            }
            None => {
                finding.evidence.push(format!("{}: no driver", gpu.pci));
                finding.worsen(Outcome::Fail, "sudo modprobe amdgpu, then look at dmesg");
            }
        }
    }
    finding
}

pub(super) fn kfd_device(facts: &Facts<'_>) -> Finding {
    const ID: &str = "kfd";
    if let Some(skip) = facts.without_amd(ID) {
        return skip;
    }
    let mut finding = Finding::new(ID, Outcome::Ok, vec![facts.kfd.evidence()]);
    if facts.kfd.error.is_some() {
        finding.worsen(
            Outcome::Fail,
            facts.kfd.fix(facts.system.container.is_some()),
        );
    }
    finding
}

pub(super) fn render_nodes(facts: &Facts<'_>) -> Finding {
    const ID: &str = "render-nodes";
    if let Some(skip) = facts.without_amd(ID) {
        return skip;
    }
    let container = facts.system.container.is_some();
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    for gpu in &facts.amd {
        let Some(minor) = gpu.render_minor else {
            finding
                .evidence
                .push(format!("{}: the kernel names no render node", gpu.pci));
            finding.worsen(Outcome::Fail, "sudo modprobe amdgpu, then look at dmesg");
            continue;
        };
        match facts.render.iter().find(|(known, _)| *known == minor) {
            Some((_, node)) => {
                finding
                    .evidence
                    .push(format!("{}: {}", gpu.pci, node.evidence()));
                if node.error.is_some() {
                    finding.worsen(Outcome::Fail, node.fix(container));
                }
            }
            None => {
                let text = format!("{}: /dev/dri/renderD{minor} is not there", gpu.pci);
                finding.evidence.push(text);
                // A container is often given one of several GPUs on purpose.
                let outcome = match container && !facts.render.is_empty() {
                    true => Outcome::Warn,
                    false => Outcome::Fail,
                };
                let fix = match container {
                    true => format!("start the container with --device /dev/dri/renderD{minor}"),
                    false => "sudo modprobe amdgpu, then look at dmesg".to_owned(),
                };
                finding.worsen(outcome, fix);
            }
        }
    }
    finding
}

pub(super) fn topology(facts: &Facts<'_>) -> Finding {
    const ID: &str = "topology";
    if let Some(skip) = facts.without_amd(ID) {
        return skip;
    }
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    for gpu in &facts.amd {
        let node = facts
            .topology
            .nodes
            .iter()
            .find(|node| node.pci == Some(gpu.pci));
        match (node, gpu.gfx) {
            (Some(node), Some(gfx)) => {
                let class = if gfx.is_integrated() {
                    "integrated"
                } else {
                    "discrete"
                };
                finding
                    .evidence
                    .push(format!("{}: node {}, {gfx}, {class}", gpu.pci, node.id));
            }
            (Some(node), None) => {
                let text = format!(
                    "{}: node {} has no readable gfx_target_version",
                    gpu.pci, node.id
                );
                finding.evidence.push(text);
                finding.worsen(
                    Outcome::Warn,
                    "update the kernel; it does not say what the GPU is",
                );
            }
            (None, _) => {
                finding.evidence.push(format!("{}: no KFD node", gpu.pci));
                finding.worsen(
                    Outcome::Warn,
                    "the compute driver does not take this GPU: use a newer kernel, or --device vulkan",
                );
            }
        }
    }
    for problem in &facts.topology.problems {
        finding.evidence.push(problem.clone());
        finding.worsen(
            Outcome::Warn,
            "make /sys/class/kfd readable for this process",
        );
    }
    finding
}

pub(super) fn environment(facts: &Facts<'_>) -> Finding {
    let host = facts.subject.host;
    let set = env::set(host);
    let mut finding = Finding::new("environment", Outcome::Ok, Vec::new());
    for (name, value) in &set {
        finding.evidence.push(format!("{name}={value}"));
    }
    for problem in env::problems(host, &facts.amd) {
        let outcome = match problem.weight {
            Weight::Warn => Outcome::Warn,
            Weight::Fail => Outcome::Fail,
        };
        finding.evidence.push(problem.text);
        finding.worsen(outcome, problem.fix);
    }
    if finding.evidence.is_empty() {
        finding
            .evidence
            .push("no variable that matters is set".into());
    }
    finding
}

pub(super) fn memory(facts: &Facts<'_>) -> Finding {
    let mut finding = Finding::new("memory", Outcome::Ok, Vec::new());
    let show = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), human);
    let system = &facts.system;
    finding.evidence.push(format!(
        "host: {} available of {}",
        show(system.memory_available),
        show(system.memory_total)
    ));
    for gpu in &facts.amd {
        let memory = &gpu.memory;
        finding.evidence.push(format!(
            "{}: video memory {} used of {}, mapped host memory {} used of {}",
            gpu.pci,
            show(memory.vram_used),
            show(memory.vram_total),
            show(memory.gtt_used),
            show(memory.gtt_total)
        ));
    }
    for device in facts
        .subject
        .inventory
        .devices
        .iter()
        .filter(|device| device.is_gpu())
    {
        finding.evidence.push(format!(
            "{}: {} free, says {}; {} in all, says {}",
            device.spec(),
            show(device.memory.free.bytes),
            device.memory.free.source,
            show(device.memory.total.bytes),
            device.memory.total.source
        ));
    }
    let integrated = facts
        .amd
        .iter()
        .any(|gpu| gpu.gfx.is_some_and(|gfx| gfx.is_integrated()));
    if integrated && let (Some(limit), Some(total)) = (system.gpu_mappable, system.memory_total) {
        finding.evidence.push(format!(
            "GPUs may map {} of host memory (ttm.pages_limit)",
            human(limit)
        ));
        if limit < total / 2 {
            let pages = total / 4 * 3 / 4096;
            finding.worsen(
                Outcome::Warn,
                format!(
                    "for large models boot with ttm.pages_limit={pages} (three quarters of memory)"
                ),
            );
        }
    }
    finding
}
