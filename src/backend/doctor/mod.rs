//! Why a GPU is or is not used: ordered checks, each with its evidence and one fix.
//!
//! The checks look, and change nothing: no network, no privileges, no vendor tool.
mod host;
mod software;

use super::{
    Inventory,
    device::DeviceInfo,
    known_bad,
    probe::{
        AMD, Host, HostGpu,
        child::{End, Trial},
        dev::{self, Opener},
        kfd::{self, Topology},
        libraries::{self, BlasData, Library},
        system::{self, System},
    },
};
use serde::Serialize;
use std::{collections::BTreeSet, fmt, path::PathBuf};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Nothing to look at on this machine.
    Skip,
    /// As it should be.
    Ok,
    /// May do harm.
    Warn,
    /// Stands in the way.
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Short name, stable between versions.
    pub id: &'static str,
    /// How it came out.
    pub outcome: Outcome,
    /// What was seen.
    pub evidence: Vec<String>,
    /// What to do; only where something is wrong.
    pub fix: Option<String>,
}

/// Every check, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Version of this program.
    pub version: &'static str,
    /// Version of the table of known faults.
    pub known_bad_table: u32,
    /// The system.
    pub system: System,
    /// The checks.
    pub findings: Vec<Finding>,
}

/// What is examined.
pub struct Subject<'a> {
    /// The machine.
    pub host: &'a Host,
    /// Its devices, after loading every backend.
    pub inventory: &'a Inventory,
    /// Opens device files.
    pub opener: &'a dyn Opener,
    /// Trials of devices in child processes; empty if none was made.
    pub trials: Vec<(DeviceInfo, Trial)>,
}

/// What the checks share, read once.
struct Facts<'a> {
    subject: &'a Subject<'a>,
    system: System,
    amd: Vec<HostGpu>,
    topology: Topology,
    kfd: dev::Node,
    render: Vec<(u32, dev::Node)>,
    libraries: Vec<Library>,
    blas: Vec<BlasData>,
    rocm: Option<String>,
}

impl Finding {
    fn new(id: &'static str, outcome: Outcome, evidence: Vec<String>) -> Finding {
        Finding {
            id,
            outcome,
            evidence,
            fix: None,
        }
    }

    fn skip(id: &'static str, why: &str) -> Finding {
        Finding::new(id, Outcome::Skip, vec![why.to_owned()])
    }

    /// Makes the outcome worse, never better; the first fix is the one that is shown.
    fn worsen(&mut self, outcome: Outcome, fix: impl Into<String>) {
        self.outcome = self.outcome.max(outcome);
        self.fix.get_or_insert(fix.into());
    }
}

/// Makes every check, in order.
pub fn examine(subject: &Subject<'_>) -> Report {
    let facts = Facts::read(subject);
    let checks: [fn(&Facts<'_>) -> Finding; 14] = [
        host::system,
        host::pci,
        host::driver,
        host::kfd_device,
        host::render_nodes,
        host::topology,
        host::environment,
        software::runtime_libraries,
        software::plugins,
        software::targets,
        software::blas_kernels,
        host::memory,
        known_faults,
        trials,
    ];
    let findings = checks.iter().map(|check| check(&facts)).collect();
    Report {
        version: env!("CARGO_PKG_VERSION"),
        known_bad_table: known_bad::TABLE_VERSION,
        system: facts.system,
        findings,
    }
}

impl<'a> Facts<'a> {
    fn read(subject: &'a Subject<'a>) -> Facts<'a> {
        let host = subject.host;
        let report = &subject.inventory.report;
        let plugin_dirs: BTreeSet<PathBuf> = report
            .attempts
            .iter()
            .filter_map(|attempt| Some(attempt.path.parent()?.to_owned()))
            .collect();
        let libraries = libraries::libraries(host, &plugin_dirs.into_iter().collect::<Vec<_>>());
        let blas = libraries::blas_data(host, &libraries);
        Facts {
            subject,
            system: system::system(host),
            amd: subject
                .inventory
                .gpus
                .iter()
                .filter(|gpu| gpu.vendor == AMD)
                .cloned()
                .collect(),
            topology: kfd::nodes(host),
            kfd: dev::kfd(host, subject.opener),
            render: dev::render(host, subject.opener),
            rocm: software::rocm_version(subject, &libraries),
            libraries,
            blas,
        }
    }

    /// A skipped check, if there is no AMD GPU to look at.
    fn without_amd(&self, id: &'static str) -> Option<Finding> {
        self.amd
            .is_empty()
            .then(|| Finding::skip(id, "no AMD GPU on the PCI bus"))
    }
}

fn known_faults(facts: &Facts<'_>) -> Finding {
    const ID: &str = "known-faults";
    if let Some(skip) = facts.without_amd(ID) {
        return skip;
    }
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    let targets: BTreeSet<_> = facts.amd.iter().filter_map(|gpu| gpu.gfx).collect();
    for gfx in targets {
        let kernel = facts.system.kernel.as_deref();
        for report in known_bad::reports(gfx, facts.rocm.as_deref(), kernel) {
            finding.evidence.push(format!(
                "{gfx}: reported: {} ({})",
                report.text, report.source
            ));
            finding.worsen(Outcome::Warn, report.fix);
        }
    }
    if finding.evidence.is_empty() {
        finding.evidence.push(format!(
            "nothing reported for this combination (table {})",
            known_bad::TABLE_VERSION
        ));
    }
    finding
}

fn trials(facts: &Facts<'_>) -> Finding {
    const ID: &str = "trial";
    if facts.subject.trials.is_empty() {
        return Finding::skip(ID, "no device was tried in a child process");
    }
    let mut finding = Finding::new(ID, Outcome::Ok, Vec::new());
    for (device, trial) in &facts.subject.trials {
        let name = device.spec();
        let reason = match &trial.end {
            End::Passed => {
                let last = trial.steps.last().map_or("", |step| step.detail.as_str());
                finding
                    .evidence
                    .push(format!("{name}: every step passed; {last}"));
                continue;
            }
            End::Failed { reason }
            | End::Crashed { reason }
            | End::TimedOut { reason }
            | End::NotStarted { reason } => reason,
        };
        finding.evidence.push(format!("{name}: {reason}"));
        finding.worsen(
            Outcome::Fail,
            format!("do not use {name}: run with --device cpu or another backend, and report this"),
        );
    }
    finding
}

impl Report {
    /// The worst outcome.
    pub fn worst(&self) -> Outcome {
        self.findings
            .iter()
            .map(|finding| finding.outcome)
            .max()
            .unwrap_or(Outcome::Skip)
    }

    /// 0 when all is well, 1 for warnings, 2 when something stands in the way.
    pub fn exit_code(&self) -> u8 {
        match self.worst() {
            Outcome::Skip | Outcome::Ok => 0,
            Outcome::Warn => 1,
            Outcome::Fail => 2,
        }
    }

    /// The report as text for a bug report: home folders and the user's name are left out.
    pub fn bundle(&self, host: &Host) -> String {
        let mut text = self.to_string();
        if let Some(home) = host.variable("HOME").or(host.variable("USERPROFILE"))
            && home.len() > 1
        {
            text = text.replace(home, "~");
        }
        for variable in ["USER", "LOGNAME", "USERNAME", "HOSTNAME"] {
            if let Some(name) = host.variable(variable).filter(|name| name.len() > 2) {
                text = text.replace(&format!("/{name}/"), "/…/");
            }
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "audiocpp {}", self.version)?;
        for finding in &self.findings {
            let mark = match finding.outcome {
                Outcome::Skip => "skip",
                Outcome::Ok => "ok",
                Outcome::Warn => "WARN",
                Outcome::Fail => "FAIL",
            };
            let mut evidence = finding.evidence.iter();
            let first = evidence.next().map_or("", String::as_str);
            writeln!(f, "{mark:<5}{:<18}{first}", finding.id)?;
            for line in evidence {
                writeln!(f, "{:23}{line}", "")?;
            }
            if let Some(fix) = &finding.fix {
                writeln!(f, "{:23}fix: {fix}", "")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
