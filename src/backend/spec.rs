//! What a user asks for: `--device`, `--backend` and `AUDIOCPP_DEVICE`.
use super::kind::{BackendType, NAMES};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The environment variable that names a device when no flag does.
pub const DEVICE_VARIABLE: &str = "AUDIOCPP_DEVICE";

/// A PCI address, `domain:bus:device.function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    /// PCI domain (segment).
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, below 32.
    pub device: u8,
    /// Function number, below 8.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04x}:{:02x}:{:02x}.{:x}",
            self.domain, self.bus, self.device, self.function
        )
    }
}

impl FromStr for PciAddress {
    type Err = SpecError;

    /// Reads `0000:c1:00.0`, or `c1:00.0` in domain 0; hexadecimal, any case.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parse = || -> Option<PciAddress> {
            let hex = |part: &str| {
                let plain = !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit());
                plain.then(|| u32::from_str_radix(part, 16).ok()).flatten()
            };
            let (address, function) = text.rsplit_once('.')?;
            let mut parts = address.rsplit(':');
            let device = hex(parts.next()?)?;
            let bus = hex(parts.next()?)?;
            let domain = parts.next().map_or(Some(0), hex)?;
            let function = hex(function)?;
            let fits = parts.next().is_none() && device < 32 && function < 8;
            fits.then_some(PciAddress {
                domain,
                bus: u8::try_from(bus).ok()?,
                device: device as u8,
                function: function as u8,
            })
        };
        parse().ok_or_else(|| SpecError::Pci(text.to_owned()))
    }
}

impl Serialize for PciAddress {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Which device of one kind is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// The one that ranks first: discrete before integrated, then most free memory.
    First,
    /// The n-th one, in the order ggml lists them.
    Ordinal(u32),
    /// The one in this slot, whatever the numbering of the day.
    Pci(PciAddress),
    /// The one with this AMD identifier, `GPU-` and sixteen hexadecimal digits.
    Uuid(String),
}

/// A parsed device string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DeviceSpec {
    /// The best device of the machine, with the CPU behind it.
    Auto,
    /// Exactly this device, or an error.
    Explicit(BackendType, Which),
}

/// A device string that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The part before the colon names no backend.
    #[error(
        "unknown device `{0}`: expected auto, cpu, or cuda, hip (alias rocm), vulkan, metal, each alone or with :N or :pci=0000:c1:00.0"
    )]
    Backend(String),
    /// The part after the colon is neither a number nor a known key.
    #[error("device `{spec}`: `{part}` is neither a number nor pci=ADDRESS nor uuid=GPU-ID")]
    Which {
        /// The whole string.
        spec: String,
        /// The part that was not understood.
        part: String,
    },
    /// Not a PCI address.
    #[error("`{0}` is no PCI address: expected domain:bus:device.function, such as 0000:c1:00.0")]
    Pci(String),
    /// A part after the colon where none has a meaning.
    #[error("device `{0}`: auto and cpu take no number")]
    NoOrdinal(String),
    /// `--backend` and `--device` contradict each other.
    #[error("--backend {backend} and --device {device} name different backends; give one of them")]
    Contradiction {
        /// What `--backend` said.
        backend: BackendType,
        /// What `--device` said.
        device: String,
    },
    /// A bare number needs a backend to count in.
    #[error(
        "--device {0}: a bare number needs --backend, such as --backend hip --device {0} or --device hip:{0}"
    )]
    BareNumber(String),
}

impl DeviceSpec {
    /// The CPU.
    pub const CPU: DeviceSpec = DeviceSpec::Explicit(BackendType::Cpu, Which::First);

    /// Joins `--backend` and `--device` (either may be absent) and, if both are, the value of
    /// `AUDIOCPP_DEVICE`. Flags win over the environment; nothing at all means `auto`.
    pub fn from_options(
        backend: Option<BackendType>,
        device: Option<&str>,
        environment: Option<&str>,
    ) -> Result<DeviceSpec, SpecError> {
        let device = device.map(str::trim).filter(|text| !text.is_empty());
        match (backend, device) {
            (None, None) => environment
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map_or(Ok(DeviceSpec::Auto), str::parse),
            (None, Some(text)) if is_number(text) => Err(SpecError::BareNumber(text.to_owned())),
            (None, Some(text)) => text.parse(),
            (Some(BackendType::Best), None) => Ok(DeviceSpec::Auto),
            (Some(kind), None) => Ok(DeviceSpec::Explicit(kind, Which::First)),
            (Some(BackendType::Best), Some(text)) if is_number(text) => {
                Err(SpecError::BareNumber(text.to_owned()))
            }
            // `--backend cpu --device 0` is what people type; there is one CPU.
            (Some(BackendType::Cpu), Some("0")) => Ok(DeviceSpec::CPU),
            (Some(kind), Some(text)) if is_number(text) => format!("{kind}:{text}").parse(),
            (Some(kind), Some(text)) => {
                let spec: DeviceSpec = text.parse()?;
                match &spec {
                    DeviceSpec::Explicit(found, _) if *found == kind => Ok(spec),
                    // `auto` among the devices of the backend that was asked for.
                    DeviceSpec::Auto if kind == BackendType::Best => Ok(spec),
                    DeviceSpec::Auto => Ok(DeviceSpec::Explicit(kind, Which::First)),
                    _ if kind == BackendType::Best => Ok(spec),
                    DeviceSpec::Explicit(..) => Err(SpecError::Contradiction {
                        backend: kind,
                        device: text.to_owned(),
                    }),
                }
            }
        }
    }

    /// The kind asked for; `Best` for auto.
    pub fn kind(&self) -> BackendType {
        match self {
            DeviceSpec::Auto => BackendType::Best,
            DeviceSpec::Explicit(kind, _) => *kind,
        }
    }
}

fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit())
}

impl FromStr for DeviceSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<DeviceSpec, SpecError> {
        let text = text.trim();
        let (name, part) = match text.split_once(':') {
            Some((name, part)) => (name, Some(part)),
            None => (text, None),
        };
        let unknown = || SpecError::Backend(text.to_owned());
        if name.eq_ignore_ascii_case("auto") || name.eq_ignore_ascii_case("best") {
            return match part {
                None => Ok(DeviceSpec::Auto),
                Some(_) => Err(SpecError::NoOrdinal(text.to_owned())),
            };
        }
        let kind: BackendType = name.parse().map_err(|_| unknown())?;
        let Some(part) = part else {
            return Ok(DeviceSpec::Explicit(kind, Which::First));
        };
        if kind == BackendType::Cpu {
            return Err(SpecError::NoOrdinal(text.to_owned()));
        }
        let strange = || SpecError::Which {
            spec: text.to_owned(),
            part: part.to_owned(),
        };
        let lower = part.to_ascii_lowercase();
        let which = if let Some(address) = lower.strip_prefix("pci=") {
            Which::Pci(address.parse()?)
        } else if let Some(id) = lower.strip_prefix("uuid=gpu-") {
            let plain = id.len() == 16 && id.chars().all(|c| c.is_ascii_hexdigit());
            Which::Uuid(plain.then(|| format!("GPU-{id}")).ok_or_else(strange)?)
        } else if !part.is_empty() && is_number(part) {
            Which::Ordinal(part.parse().map_err(|_| strange())?)
        } else {
            return Err(strange());
        };
        Ok(DeviceSpec::Explicit(kind, which))
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSpec::Auto => f.write_str("auto"),
            DeviceSpec::Explicit(kind, Which::First) => write!(f, "{kind}"),
            DeviceSpec::Explicit(kind, Which::Ordinal(n)) => write!(f, "{kind}:{n}"),
            DeviceSpec::Explicit(kind, Which::Pci(pci)) => write!(f, "{kind}:pci={pci}"),
            DeviceSpec::Explicit(kind, Which::Uuid(id)) => write!(f, "{kind}:uuid={id}"),
        }
    }
}

impl Serialize for DeviceSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The help text of `--device`, with every spelling that [`DeviceSpec`] accepts.
pub fn device_help() -> String {
    let gpus: Vec<String> = NAMES
        .iter()
        .filter(|row| row.kind.is_gpu())
        .map(|row| match row.aliases {
            [] => row.name.to_owned(),
            aliases => format!("{} (alias {})", row.name, aliases.join(", ")),
        })
        .collect();
    format!(
        "auto, cpu, or one of {}; alone, with :N, or with :pci=0000:c1:00.0",
        gpus.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(text: &str) -> DeviceSpec {
        text.parse().unwrap()
    }

    #[test]
    fn reads_every_spelling() {
        let pci = PciAddress {
            domain: 0,
            bus: 0xc1,
            device: 0,
            function: 0,
        };
        for (text, kind, which) in [
            ("cpu", BackendType::Cpu, Which::First),
            ("hip", BackendType::Hip, Which::First),
            ("ROCm:1", BackendType::Hip, Which::Ordinal(1)),
            ("hip:1", BackendType::Hip, Which::Ordinal(1)),
            ("rocm:pci=0000:C1:00.0", BackendType::Hip, Which::Pci(pci)),
            ("rocm:pci=c1:00.0", BackendType::Hip, Which::Pci(pci)),
            ("vulkan:0", BackendType::Vulkan, Which::Ordinal(0)),
            (" Metal ", BackendType::Metal, Which::First),
            (
                "hip:uuid=GPU-00112233aabbccdd",
                BackendType::Hip,
                Which::Uuid("GPU-00112233aabbccdd".into()),
            ),
        ] {
            assert_eq!(spec(text), DeviceSpec::Explicit(kind, which), "{text}");
        }
        assert_eq!(spec("AUTO"), DeviceSpec::Auto);
        assert_eq!(spec("best"), DeviceSpec::Auto);
    }

    #[test]
    fn refuses_the_rest_and_says_why() {
        for (text, says) in [
            ("", "unknown device"),
            ("gpu", "unknown device"),
            ("cuda:", "neither a number"),
            ("cuda:-1", "neither a number"),
            ("cuda:99999999999", "neither a number"),
            ("cuda:0x1", "neither a number"),
            ("cpu:0", "no number"),
            ("auto:1", "no number"),
            ("hip:pci=zz", "PCI address"),
            ("hip:pci=0000:c1:20.0", "PCI address"),
            ("hip:pci=0000:c1:00.9", "PCI address"),
            ("hip:pci=1:2:3:4.0", "PCI address"),
            ("hip:uuid=GPU-12", "uuid="),
        ] {
            let error = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn options_join_and_flags_win() {
        let join = DeviceSpec::from_options;
        let hip = Some(BackendType::Hip);
        assert_eq!(join(None, None, None), Ok(DeviceSpec::Auto));
        assert_eq!(join(None, None, Some("hip:1")), Ok(spec("hip:1")));
        assert_eq!(join(None, Some("cpu"), Some("hip:1")), Ok(spec("cpu")));
        assert_eq!(join(hip, None, Some("cpu")), Ok(spec("hip")));
        assert_eq!(join(hip, Some("1"), None), Ok(spec("hip:1")));
        assert_eq!(join(hip, Some("rocm:2"), None), Ok(spec("hip:2")));
        assert_eq!(join(hip, Some("auto"), None), Ok(spec("hip")));
        assert_eq!(
            join(Some(BackendType::Cpu), Some("0"), None),
            Ok(DeviceSpec::CPU)
        );
        assert_eq!(
            join(Some(BackendType::Best), None, Some("cpu")),
            Ok(DeviceSpec::Auto)
        );
        assert!(matches!(
            join(hip, Some("cuda:0"), None),
            Err(SpecError::Contradiction { .. })
        ));
        assert!(matches!(
            join(None, Some("1"), None),
            Err(SpecError::BareNumber(_))
        ));
        assert!(matches!(
            join(Some(BackendType::Best), Some("1"), None),
            Err(SpecError::BareNumber(_))
        ));
    }

    #[test]
    fn help_says_that_rocm_is_hip() {
        assert!(device_help().contains("hip (alias rocm)"));
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(n in any::<u32>(), bus in any::<u8>(), device in 0u8..32, function in 0u8..8, kind in 1usize..5) {
            let kind = NAMES[kind].kind;
            let pci = PciAddress { domain: n % 0x10000, bus, device, function };
            for which in [Which::First, Which::Ordinal(n), Which::Pci(pci)] {
                let spec = DeviceSpec::Explicit(kind, which);
                prop_assert_eq!(spec.to_string().parse::<DeviceSpec>(), Ok(spec));
            }
        }

        #[test]
        fn junk_never_panics(text in ".{0,24}") {
            let _ = text.parse::<DeviceSpec>();
            let _ = DeviceSpec::from_options(Some(BackendType::Hip), Some(&text), None);
        }
    }
}
