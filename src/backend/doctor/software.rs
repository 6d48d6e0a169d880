//! Checks of the runtime libraries, the plugins and their packs.
use super::{Facts, Finding, Outcome, Subject};
use crate::backend::{
    kind::BackendType,
    load::Attempt,
    pack,
    probe::libraries::{
        Library, missing_library, rocm_release, rocm_version as stated_version, roots,
    },
    registry::{Verdict, backend},
};

/// The ROCm version that a HIP plugin runs with: its pack's, the winning runtime's, or the newest
/// installation's.
pub(super) fn rocm_version(subject: &Subject<'_>, libraries: &[Library]) -> Option<String> {
    let packed = subject
        .inventory
        .report
        .pack_of("ROCm")
        .and_then(|pack| pack.manifest.rocm.clone());
    let winner = || {
        let hip = libraries
            .iter()
            .find(|library| library.name == "libamdhip64")?;
        let version = hip.winner()?.version.clone()?;
        // libamdhip64.so.7.2.70204 is ROCm 7.2.4: the last part is 7 02 04.
        let mut parts = version.split('.');
        let (major, minor) = (parts.next()?, parts.next()?);
        let patch = parts.next().and_then(|last| {
            let digits = last.get(last.len().checked_sub(2)?..)?;
            digits.parse::<u32>().ok()
        });
        Some(match patch {
            Some(patch) => format!("{major}.{minor}.{patch}"),
            None => format!("{major}.{minor}"),
        })
    };
    let installed = || {
        roots(subject.host)
            .iter()
            .find_map(|root| stated_version(subject.host, root))
    };
    packed.or_else(winner).or_else(installed)
}

pub(super) fn runtime_libraries(facts: &Facts<'_>) -> Finding {
    const ID: &str = "runtime";
    if let Some(skip) = facts.without_amd(ID) {
        return skip;
    }
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    if let Some(version) = &facts.rocm {
        finding.evidence.push(format!("ROCm {version}"));
    }
    for library in &facts.libraries {
        for (i, copy) in library.copies.iter().enumerate() {
            let version = copy.version.as_deref().unwrap_or("no version");
            let role = match (copy.searched, i) {
                (false, _) => "not searched",
                (true, 0) => "wins",
                (true, _) => "hidden",
            };
            finding
                .evidence
                .push(format!("{} {version} ({role})", copy.path));
        }
        if let (Some(mapped), Some(winner)) = (&library.mapped, library.winner())
            && !same_version(mapped, winner.version.as_deref())
        {
            finding
                .evidence
                .push(format!("in use: {mapped}, not {}", winner.path));
            finding.worsen(Outcome::Warn, "start with LD_LIBRARY_PATH unset");
        }
    }
    let majors = |library: &Library| {
        let mut majors: Vec<String> = library
            .copies
            .iter()
            .filter(|copy| copy.searched)
            .filter_map(|copy| Some(copy.version.as_ref()?.split('.').next()?.to_owned()))
            .collect();
        majors.sort();
        majors.dedup();
        majors.len()
    };
    for library in facts.libraries.iter().filter(|library| majors(library) > 1) {
        let text = format!("{}: several major versions are searched", library.name);
        finding.evidence.push(text);
        finding.worsen(
            Outcome::Warn,
            "take the older ROCm out of LD_LIBRARY_PATH and /etc/ld.so.conf.d",
        );
    }
    if finding.evidence.is_empty() {
        finding
            .evidence
            .push("no ROCm library on this machine".into());
        finding.worsen(
            Outcome::Warn,
            "install a ROCm pack, which brings its libraries",
        );
    }
    finding
}

fn same_version(path: &str, version: Option<&str>) -> bool {
    version.is_none_or(|version| path.ends_with(version))
}

pub(super) fn plugins(facts: &Facts<'_>) -> Finding {
    let inventory = facts.subject.inventory;
    let report = &inventory.report;
    let mut finding = Finding::new("plugins", Outcome::Ok, Vec::new());
    for attempt in &report.attempts {
        let from = attempt
            .pack
            .as_ref()
            .map_or(String::new(), |pack| format!(" (pack {pack})"));
        let path = attempt.path.display();
        match &attempt.error {
            None => finding
                .evidence
                .push(format!("{}: {path}{from} loaded", attempt.backend)),
            Some(error) => {
                finding
                    .evidence
                    .push(format!("{}: {path}{from}: {error}", attempt.backend));
                // Another file of the kind may have worked.
                if !report.loaded(attempt.backend) {
                    finding.worsen(Outcome::Warn, load_fix(attempt, error));
                }
            }
        }
    }
    for pack in &report.packs {
        for problem in pack.verify() {
            finding.evidence.push(problem);
            finding.worsen(
                Outcome::Fail,
                format!(
                    "the pack {} is damaged: install it again",
                    pack.manifest.name
                ),
            );
        }
    }
    for bad in &report.bad_packs {
        finding.evidence.push(bad.clone());
        finding.worsen(Outcome::Warn, "install the pack again");
    }
    let has = |kind: BackendType| {
        inventory
            .devices
            .iter()
            .any(|device| device.backend == kind)
    };
    if !has(BackendType::Cpu) {
        finding.evidence.push(report.reason(BackendType::Cpu));
        finding.worsen(Outcome::Fail, advice(BackendType::Cpu));
    }
    if !facts.amd.is_empty() && !has(BackendType::Hip) {
        finding
            .evidence
            .push(inventory.why_missing(BackendType::Hip));
        let usable = has(BackendType::Vulkan);
        let outcome = if usable { Outcome::Warn } else { Outcome::Fail };
        finding.worsen(outcome, advice(BackendType::Hip));
    }
    finding
}

fn advice(kind: BackendType) -> &'static str {
    backend(kind).map_or("", |backend| backend.advice())
}

fn load_fix(attempt: &Attempt, error: &str) -> String {
    match missing_library(error) {
        Some((library, Some(number))) => match rocm_release(&library, &number) {
            Some(release) => format!(
                "{library}.{number} belongs to ROCm {release}: install a pack that brings it, or \
                 ROCm {release}"
            ),
            None => format!("install {library}.{number}, or a pack that brings it"),
        },
        Some((library, None)) => format!("install {library}, or a pack that brings it"),
        None => format!("install the {} pack of this release again", attempt.backend),
    }
}

pub(super) fn targets(facts: &Facts<'_>) -> Finding {
    const ID: &str = "targets";
    let inventory = facts.subject.inventory;
    let hip: Vec<_> = inventory
        .devices
        .iter()
        .filter(|device| device.backend == BackendType::Hip)
        .collect();
    if hip.is_empty() {
        return Finding::skip(ID, "no HIP device to compare with a pack");
    }
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    for device in hip {
        let name = device.spec();
        match inventory.judge(device) {
            Verdict::Usable => {
                let targets = inventory
                    .report
                    .pack_of(&device.registry)
                    .map(|found| pack::list(&found.targets()))
                    .filter(|targets| !targets.is_empty());
                let gfx = device
                    .gfx
                    .map_or("of unknown gfx".to_owned(), |gfx| gfx.to_string());
                finding.evidence.push(match targets {
                    Some(targets) => format!("{name} is {gfx}; the pack has {targets}"),
                    None => format!("{name} is {gfx}; the plugin lists no targets"),
                });
            }
            Verdict::Doubtful(reason) => {
                finding.evidence.push(format!("{name}: {reason}"));
                finding.worsen(Outcome::Warn, format!("try it with --device {name}"));
            }
            Verdict::Unusable(reason) => {
                finding.evidence.push(format!("{name}: {reason}"));
                finding.worsen(Outcome::Fail, "install a pack with kernels for this GPU");
            }
        }
    }
    finding
}

pub(super) fn blas_kernels(facts: &Facts<'_>) -> Finding {
    const ID: &str = "blas-kernels";
    if let Some(skip) = facts.without_amd(ID) {
        return skip;
    }
    if facts.blas.is_empty() {
        return Finding::skip(ID, "neither rocBLAS nor hipBLASLt is installed");
    }
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    for data in &facts.blas {
        let targets: Vec<_> = data.targets.iter().copied().collect();
        finding.evidence.push(match &data.folder {
            Some(folder) => format!("{}: {folder}: {}", data.library, pack::list(&targets)),
            None => format!("{}: no folder of kernels beside the library", data.library),
        });
    }
    for gpu in &facts.amd {
        let Some(gfx) = gpu.gfx else { continue };
        let has = |name: &str| {
            facts
                .blas
                .iter()
                .any(|data| data.library == name && data.targets.contains(&gfx))
        };
        match (has("rocblas"), has("hipblaslt")) {
            (true, _) => {}
            (false, true) => finding.evidence.push(format!(
                "{gfx}: rocBLAS has no kernels, hipBLASLt has; products outside its route would end the process"
            )),
            (false, false) => {
                finding.evidence.push(format!("{gfx}: no BLAS library has kernels for it"));
                finding.worsen(
                    Outcome::Fail,
                    format!("use a ROCm whose libraries have {gfx}, or --device vulkan or cpu"),
                );
            }
        }
    }
    finding
}
