//! Choosing a device: ranking for `auto`, exactness for explicit requests, reasons for both.
use super::{
    device::{DeviceClass, DeviceInfo},
    kind::BackendType,
    registry::{Verdict, backend},
    spec::{DeviceSpec, Which},
};
use serde::Serialize;
use std::{cmp::Reverse, fmt};

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The device.
    pub spec: DeviceSpec,
    /// `--fallback cpu`: an explicit device may be replaced by the CPU, as under `auto`.
    pub fallback_cpu: bool,
}

impl Request {
    /// A request without a fallback of its own; `auto` has one anyway.
    pub fn new(spec: DeviceSpec) -> Request {
        Request {
            spec,
            fallback_cpu: false,
        }
    }
}

/// A device that was not used, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its device string.
    pub device: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.device, self.reason)
    }
}

/// Devices to try in order. Only `auto`, or an explicit request that opted in, has more than one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// First choice first.
    pub candidates: Vec<DeviceInfo>,
    /// Devices that `auto` left out, with the reasons.
    pub passed_over: Vec<Skipped>,
    /// An explicit device that is not there or unfit, when the CPU may stand in for it.
    pub missing: Option<Skipped>,
}

/// Why no device could be chosen or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The explicit device is not there.
    #[error("no device {wanted}: {why}. Devices: {exists}. {advice}")]
    Missing {
        /// The device string.
        wanted: String,
        /// Why there is none.
        why: String,
        /// The devices that exist.
        exists: String,
        /// What to do.
        advice: String,
    },
    /// The explicit device is there but cannot work.
    #[error("device {wanted} cannot be used: {reason}")]
    Unusable {
        /// The device string.
        wanted: String,
        /// The reason.
        reason: String,
    },
    /// The device is there and its opening failed.
    #[error(
        "device {wanted} failed: {reason}. An explicit device has no fallback; add --fallback cpu or use --device auto to allow one"
    )]
    Failed {
        /// The device string.
        wanted: String,
        /// The reason.
        reason: String,
    },
    /// Not even the CPU worked.
    #[error("no device could be opened: {}", join(tried))]
    NoneLeft {
        /// Every device with its reason.
        tried: Vec<Skipped>,
    },
}

fn join(skipped: &[Skipped]) -> String {
    if skipped.is_empty() {
        return "there is none, not even the CPU".to_owned();
    }
    let texts: Vec<String> = skipped.iter().map(Skipped::to_string).collect();
    texts.join("; ")
}

/// A value that was opened on a device, with the devices that failed before it.
#[derive(Debug)]
pub struct Opened<T> {
    /// What was opened.
    pub value: T,
    /// Where.
    pub device: DeviceInfo,
    /// What was preferred and failed; empty when the first choice worked.
    pub fallbacks: Vec<Skipped>,
}

/// Device strings with names, for messages.
pub fn describe(devices: &[DeviceInfo]) -> String {
    if devices.is_empty() {
        return "none".to_owned();
    }
    let texts: Vec<String> = devices
        .iter()
        .map(|device| match device.pci {
            Some(pci) => format!("{} ({}, {pci})", device.spec(), device.description),
            None => format!("{} ({})", device.spec(), device.description),
        })
        .collect();
    texts.join(", ")
}

/// Smaller is better: discrete before integrated before CPU, then the backend's rank, then the
/// most free memory, then ggml's order.
fn key(device: &DeviceInfo) -> (DeviceClass, u8, Reverse<u64>, u32) {
    (
        device.class,
        backend(device.backend).map_or(u8::MAX, |backend| backend.rank()),
        Reverse(device.memory.free.bytes.unwrap_or(0)),
        device.ordinal,
    )
}

/// Makes the plan for a request.
///
/// `judge` compares a device with its plugin; `why_missing` explains why a kind has no device.
pub fn plan(
    request: &Request,
    devices: &[DeviceInfo],
    judge: &dyn Fn(&DeviceInfo) -> Verdict,
    why_missing: &dyn Fn(BackendType) -> String,
) -> Result<Plan, SelectError> {
    match &request.spec {
        DeviceSpec::Auto => Ok(plan_auto(devices, judge)),
        DeviceSpec::Explicit(kind, which) => {
            let wanted = request.spec.to_string();
            let found = find(*kind, which, devices)
                .ok_or_else(|| missing(&wanted, *kind, devices, why_missing))
                .and_then(|device| match judge(device) {
                    Verdict::Unusable(reason) => Err(SelectError::Unusable {
                        wanted: wanted.clone(),
                        reason,
                    }),
                    _ => Ok(device.clone()),
                });
            with_cpu(found, request.fallback_cpu, wanted, devices)
        }
    }
}

/// The explicit device alone, or with the CPU behind (or instead of) it.
fn with_cpu(
    found: Result<DeviceInfo, SelectError>,
    fallback_cpu: bool,
    wanted: String,
    devices: &[DeviceInfo],
) -> Result<Plan, SelectError> {
    let cpu = devices
        .iter()
        .find(|device| device.class == DeviceClass::Cpu && fallback_cpu);
    let mut plan = Plan::default();
    match (found, cpu) {
        (Ok(device), _) => plan.candidates.push(device),
        (Err(error), None) => return Err(error),
        (Err(error), Some(_)) => {
            plan.missing = Some(Skipped {
                device: wanted,
                reason: error.to_string(),
            });
        }
    }
    if let Some(cpu) = cpu
        && !plan.candidates.contains(cpu)
    {
        plan.candidates.push(cpu.clone());
    }
    Ok(plan)
}

fn plan_auto(devices: &[DeviceInfo], judge: &dyn Fn(&DeviceInfo) -> Verdict) -> Plan {
    let mut ranked: Vec<&DeviceInfo> = devices.iter().collect();
    ranked.sort_by_key(|device| key(device));
    let discrete = devices
        .iter()
        .any(|device| device.class == DeviceClass::Discrete);
    let mut plan = Plan::default();
    for device in ranked {
        let taken = |known: &&DeviceInfo| device.pci.is_some() && known.pci == device.pci;
        let reason = if device.class == DeviceClass::Integrated && discrete {
            Some("integrated, and the machine has a discrete GPU; name it to use it".to_owned())
        } else if let Some(known) = plan.candidates.iter().find(taken) {
            Some(format!("the same card as {}", known.spec()))
        } else {
            match judge(device) {
                Verdict::Usable => None,
                Verdict::Doubtful(reason) | Verdict::Unusable(reason) => Some(reason),
            }
        };
        match reason {
            None => plan.candidates.push(device.clone()),
            Some(reason) => plan.passed_over.push(Skipped {
                device: device.spec(),
                reason,
            }),
        }
    }
    plan
}

fn find<'a>(kind: BackendType, which: &Which, devices: &'a [DeviceInfo]) -> Option<&'a DeviceInfo> {
    let mut same = devices.iter().filter(|device| device.backend == kind);
    match which {
        Which::First => same.min_by_key(|device| key(device)),
        Which::Ordinal(n) => same.find(|device| device.ordinal == *n),
        Which::Pci(pci) => same.find(|device| device.pci == Some(*pci)),
        Which::Uuid(id) => same.find(|device| device.uuid.as_deref() == Some(id)),
    }
}

fn missing(
    wanted: &str,
    kind: BackendType,
    devices: &[DeviceInfo],
    why_missing: &dyn Fn(BackendType) -> String,
) -> SelectError {
    let same = devices.iter().filter(|device| device.backend == kind);
    let count = same.count();
    let (why, advice) = match count {
        0 => (
            why_missing(kind),
            backend(kind)
                .map_or("", |backend| backend.advice())
                .to_owned(),
        ),
        _ => (
            format!("{kind} has {count} device(s), none of which is meant"),
            "Use one of the listed names".to_owned(),
        ),
    };
    SelectError::Missing {
        wanted: wanted.to_owned(),
        why,
        exists: describe(devices),
        advice,
    }
}

impl Plan {
    /// Tries the candidates in order. `open` may do everything that can show a device to be
    /// unfit: initialise it, run the canary, load a model and warm it up.
    ///
    /// With one candidate its failure is the error; with several, each failure is logged as a
    /// warning and returned among the fallbacks of the one that worked.
    pub fn open<T, E: fmt::Display>(
        &self,
        mut open: impl FnMut(&DeviceInfo) -> Result<T, E>,
    ) -> Result<Opened<T>, SelectError> {
        let mut fallbacks: Vec<Skipped> = self.missing.iter().cloned().collect();
        for device in &self.candidates {
            match open(device) {
                Ok(value) => {
                    return Ok(Opened {
                        value,
                        device: device.clone(),
                        fallbacks,
                    });
                }
                Err(error) if self.candidates.len() == 1 && fallbacks.is_empty() => {
                    return Err(SelectError::Failed {
                        wanted: device.spec(),
                        reason: error.to_string(),
                    });
                }
                Err(error) => {
                    let failed = Skipped {
                        device: device.spec(),
                        reason: error.to_string(),
                    };
                    tracing::warn!("{failed}; trying the next device");
                    fallbacks.push(failed);
                }
            }
        }
        Err(SelectError::NoneLeft { tried: fallbacks })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        device::tests::device,
        memory::{Amount, Source},
    };
    use super::*;
    use proptest::prelude::*;

    fn gpu(kind: BackendType, ordinal: u32, class: DeviceClass, bus: u8, free: u64) -> DeviceInfo {
        let mut info = device(kind, ordinal, class);
        info.pci = Some(format!("0000:{bus:02x}:00.0").parse().unwrap());
        info.memory.free = Amount::new(free, Source::Ggml);
        info
    }

    fn cpu() -> DeviceInfo {
        device(BackendType::Cpu, 0, DeviceClass::Cpu)
    }

    fn usable(_: &DeviceInfo) -> Verdict {
        Verdict::Usable
    }

    fn absent(kind: BackendType) -> String {
        format!("no plugin for {kind}")
    }

    fn chosen(spec: &str, devices: &[DeviceInfo]) -> Vec<String> {
        let request = Request::new(spec.parse().unwrap());
        let plan = plan(&request, devices, &usable, &absent).unwrap();
        plan.candidates.iter().map(DeviceInfo::spec).collect()
    }

    use BackendType::{Cuda, Hip, Vulkan};
    use DeviceClass::{Discrete, Integrated};

    #[test]
    fn auto_ranks_backends_then_memory_and_ends_on_the_cpu() {
        let devices = [
            cpu(),
            gpu(Vulkan, 0, Discrete, 9, 90),
            gpu(Hip, 0, Discrete, 3, 10),
            gpu(Hip, 1, Discrete, 4, 20),
            gpu(Cuda, 0, Discrete, 1, 1),
        ];
        assert_eq!(
            chosen("auto", &devices),
            ["cuda:0", "hip:1", "hip:0", "vulkan:0", "cpu"]
        );
        assert_eq!(chosen("auto", &[cpu()]), ["cpu"]);
    }

    #[test]
    fn one_card_is_used_through_one_backend() {
        let devices = [
            gpu(Vulkan, 0, Discrete, 3, 90),
            gpu(Hip, 0, Discrete, 3, 10),
            cpu(),
        ];
        assert_eq!(chosen("auto", &devices), ["hip:0", "cpu"]);
        // Without kernels for the card in HIP, Vulkan may have it.
        let no_hip = |device: &DeviceInfo| match device.backend {
            Hip => Verdict::Unusable("no kernels".into()),
            _ => Verdict::Usable,
        };
        let plan = plan(&Request::new(DeviceSpec::Auto), &devices, &no_hip, &absent).unwrap();
        assert_eq!(plan.candidates[0].spec(), "vulkan:0");
        assert_eq!(plan.passed_over[0].to_string(), "hip:0: no kernels");
    }

    #[test]
    fn integrated_only_alone_or_when_asked() {
        let both = [
            cpu(),
            gpu(Hip, 0, Discrete, 3, 10),
            gpu(Hip, 1, Integrated, 0xc1, 900),
        ];
        assert_eq!(chosen("auto", &both), ["hip:0", "cpu"]);
        assert_eq!(chosen("hip:1", &both), ["hip:1"]);
        assert_eq!(chosen("hip", &both), ["hip:0"]);
        assert_eq!(chosen("rocm:pci=c1:00.0", &both), ["hip:1"]);
        assert_eq!(chosen("auto", &both[2..]), ["hip:1"]);
    }

    #[test]
    fn equal_cards_keep_ggmls_order() {
        let devices = [gpu(Hip, 0, Discrete, 3, 10), gpu(Hip, 1, Discrete, 4, 10)];
        assert_eq!(chosen("auto", &devices), ["hip:0", "hip:1"]);
    }

    #[test]
    fn a_missing_explicit_device_lists_what_exists() {
        let devices = [cpu(), gpu(Hip, 0, Discrete, 3, 10)];
        let fail = |spec: &str| {
            let request = Request::new(spec.parse().unwrap());
            plan(&request, &devices, &usable, &absent)
                .unwrap_err()
                .to_string()
        };
        let error = fail("hip:3");
        assert!(
            error.contains("hip:3") && error.contains("hip:0"),
            "{error}"
        );
        assert!(
            error.contains("0000:03:00.0") && error.contains("cpu"),
            "{error}"
        );
        let error = fail("cuda:0");
        assert!(
            error.contains("no plugin for cuda") && error.contains("CUDA pack"),
            "{error}"
        );
    }

    #[test]
    fn explicit_never_falls_back_unless_allowed() {
        let devices = [cpu(), gpu(Hip, 0, Discrete, 3, 10)];
        let mut request = Request::new("hip".parse().unwrap());
        let broken = |device: &DeviceInfo| match device.is_gpu() {
            true => Err("out of memory"),
            false => Ok(7),
        };
        let strict = plan(&request, &devices, &usable, &absent).unwrap();
        let error = strict.open(broken).unwrap_err();
        assert!(matches!(&error, SelectError::Failed { wanted, .. } if wanted == "hip:0"));
        assert!(error.to_string().contains("--fallback cpu"), "{error}");

        request.fallback_cpu = true;
        let opened = plan(&request, &devices, &usable, &absent)
            .unwrap()
            .open(broken)
            .unwrap();
        assert_eq!((opened.value, opened.device.spec().as_str()), (7, "cpu"));
        assert_eq!(opened.fallbacks[0].to_string(), "hip:0: out of memory");
    }

    #[test]
    fn an_absent_explicit_device_is_a_reported_fallback_when_allowed() {
        let request = Request {
            spec: "cuda".parse().unwrap(),
            fallback_cpu: true,
        };
        let plan = plan(&request, &[cpu()], &usable, &absent).unwrap();
        let opened = plan.open(|_| Ok::<_, String>(())).unwrap();
        assert_eq!(opened.device.spec(), "cpu");
        assert!(opened.fallbacks[0].reason.contains("no plugin for cuda"));
    }

    #[test]
    fn auto_reports_every_device_that_failed() {
        let devices = [
            cpu(),
            gpu(Cuda, 0, Discrete, 1, 1),
            gpu(Hip, 0, Discrete, 3, 10),
        ];
        let plan = plan(&Request::new(DeviceSpec::Auto), &devices, &usable, &absent).unwrap();
        let opened = plan
            .open(|device| match device.backend {
                BackendType::Cpu => Ok(()),
                kind => Err(format!("{kind} canary failed")),
            })
            .unwrap();
        let failed: Vec<&str> = opened.fallbacks.iter().map(|s| s.device.as_str()).collect();
        assert_eq!(failed, ["cuda:0", "hip:0"]);
        let none = plan.open(|_| Err::<(), _>("broken")).unwrap_err();
        assert!(
            matches!(&none, SelectError::NoneLeft { tried } if tried.len() == 3),
            "{none}"
        );
    }

    fn any_device() -> impl Strategy<Value = DeviceInfo> {
        (1usize..5, prop::bool::ANY, 0u8..4, 0u64..4).prop_map(|(kind, integrated, bus, free)| {
            let class = if integrated { Integrated } else { Discrete };
            gpu(super::super::kind::NAMES[kind].kind, 0, class, bus, free)
        })
    }

    /// Devices numbered as ggml would, kind by kind.
    fn numbered(mut devices: Vec<DeviceInfo>) -> Vec<DeviceInfo> {
        for i in 0..devices.len() {
            let kind = devices[i].backend;
            let before = devices[..i].iter().filter(|d| d.backend == kind).count();
            devices[i].ordinal = before as u32;
        }
        devices.push(cpu());
        devices
    }

    proptest! {
        #[test]
        fn auto_obeys_its_rules_in_any_order(
            (devices, shuffled) in prop::collection::vec(any_device(), 0..7)
                .prop_map(numbered)
                .prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle()))
        ) {
            let request = Request::new(DeviceSpec::Auto);
            let first = plan(&request, &devices, &usable, &absent).unwrap();
            let second = plan(&request, &shuffled, &usable, &absent).unwrap();
            prop_assert_eq!(&first.candidates, &second.candidates);
            prop_assert_eq!(first.candidates.len() + first.passed_over.len(), devices.len());
            prop_assert_eq!(first.candidates.last().unwrap().spec(), "cpu");
            let discrete = devices.iter().any(|d| d.class == Discrete);
            let mut cards = Vec::new();
            for pair in first.candidates.windows(2) {
                prop_assert!(key(&pair[0]) < key(&pair[1]));
            }
            for device in first.candidates.iter().filter(|d| d.is_gpu()) {
                prop_assert!(!(discrete && device.class == Integrated));
                prop_assert!(!cards.contains(&device.pci));
                cards.push(device.pci);
            }
        }

        #[test]
        fn an_explicit_ordinal_always_wins(
            devices in prop::collection::vec(any_device(), 1..7).prop_map(numbered),
            pick in any::<prop::sample::Index>(),
        ) {
            let wanted = &devices[pick.index(devices.len())];
            prop_assert_eq!(chosen(&wanted.spec(), &devices), [wanted.spec()]);
        }
    }
}
