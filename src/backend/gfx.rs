//! AMD instruction-set names (`gfx1151`) and the two ways the system writes them.
use serde::{Serialize, Serializer};
use std::{fmt, str::FromStr};

/// An AMD GPU instruction set, such as gfx90a or gfx1151.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gfx {
    /// Generation, from 6: 9 for Vega and Instinct, 10 to 12 for RDNA.
    pub major: u32,
    /// Second part, one hexadecimal digit in the name.
    pub minor: u32,
    /// Third part, one hexadecimal digit in the name.
    pub stepping: u32,
}

/// A text or number that names no instruction set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no AMD target: expected gfx followed by a generation and two hexadecimal digits, such as gfx1151"
)]
pub struct BadGfx(pub String);

impl Gfx {
    /// Decodes the kernel's `gfx_target_version`: `major * 10000 + minor * 100 + stepping`.
    ///
    /// None for 0 (a CPU node) and for values whose parts do not fit a name.
    pub fn from_target_version(version: u32) -> Option<Gfx> {
        let gfx = Gfx {
            major: version / 10_000,
            minor: version / 100 % 100,
            stepping: version % 100,
        };
        gfx.is_valid().then_some(gfx)
    }

    /// The value the kernel would print as `gfx_target_version`.
    pub fn target_version(self) -> u32 {
        self.major * 10_000 + self.minor * 100 + self.stepping
    }

    /// Parses `HSA_OVERRIDE_GFX_VERSION`, three decimal numbers such as `11.0.0`.
    pub fn from_override(text: &str) -> Result<Gfx, BadGfx> {
        let bad = || BadGfx(text.to_owned());
        let parts: Vec<u32> = text
            .trim()
            .split('.')
            .map(|part| part.parse().map_err(|_| bad()))
            .collect::<Result<_, _>>()?;
        let [major, minor, stepping] = parts[..] else {
            return Err(bad());
        };
        let gfx = Gfx {
            major,
            minor,
            stepping,
        };
        if gfx.is_valid() { Ok(gfx) } else { Err(bad()) }
    }

    /// Whether kernels of `other` are at least of the same generation and sub-generation, as
    /// gfx1100 and gfx1103 are. Such kernels often run under an override; they are not the same.
    pub fn same_family(self, other: Gfx) -> bool {
        self.major == other.major && self.minor == other.minor
    }

    /// Whether every GPU of this instruction set shares the host's memory.
    pub fn is_integrated(self) -> bool {
        matches!(
            (self.major, self.minor, self.stepping),
            (9, 0, 2 | 9 | 12) | (10, 1, 3) | (10, 3, 3 | 5 | 6 | 7) | (11, 0, 3) | (11, 5, _)
        )
    }

    fn is_valid(self) -> bool {
        (6..=99).contains(&self.major) && self.minor <= 15 && self.stepping <= 15
    }
}

impl fmt::Display for Gfx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{:x}{:x}", self.major, self.minor, self.stepping)
    }
}

impl FromStr for Gfx {
    type Err = BadGfx;

    /// Reads `gfx1151`; features after a colon (`gfx90a:sramecc+:xnack-`) are left out.
    fn from_str(text: &str) -> Result<Gfx, BadGfx> {
        let bad = || BadGfx(text.to_owned());
        let name = text.split(':').next().unwrap_or_default();
        let digits = name.strip_prefix("gfx").ok_or_else(bad)?;
        if !digits.is_ascii() || digits.len() < 3 || digits.len() > 4 {
            return Err(bad());
        }
        let (major, rest) = digits.split_at(digits.len() - 2);
        if major.starts_with(['0', '+']) {
            return Err(bad());
        }
        let hex = |digit: &str| u32::from_str_radix(digit, 16).map_err(|_| bad());
        let gfx = Gfx {
            major: major.parse().map_err(|_| bad())?,
            minor: hex(&rest[..1])?,
            stepping: hex(&rest[1..])?,
        };
        if gfx.is_valid() { Ok(gfx) } else { Err(bad()) }
    }
}

impl Serialize for Gfx {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decodes_the_kernels_numbers() {
        for (version, name) in [
            (80003, "gfx803"),
            (90008, "gfx908"),
            (90010, "gfx90a"),
            (90012, "gfx90c"),
            (90402, "gfx942"),
            (90500, "gfx950"),
            (100100, "gfx1010"),
            (100300, "gfx1030"),
            (100306, "gfx1036"),
            (110000, "gfx1100"),
            (110003, "gfx1103"),
            (110500, "gfx1150"),
            (110501, "gfx1151"),
            (110502, "gfx1152"),
            (120000, "gfx1200"),
            (120001, "gfx1201"),
        ] {
            let gfx = Gfx::from_target_version(version).unwrap();
            assert_eq!(gfx.to_string(), name);
            assert_eq!(gfx.target_version(), version);
            assert_eq!(name.parse(), Ok(gfx));
        }
    }

    #[test]
    fn refuses_what_is_no_target() {
        for version in [0, 9999, 91600, 110016, 109999, u32::MAX] {
            assert_eq!(Gfx::from_target_version(version), None, "{version}");
        }
        for text in [
            "", "gfx", "gfx1", "1151", "gfx115", "gfxx11", "gfx11510", "gfx0900", "gfx+90",
            "gfx11é",
        ] {
            assert!(text.parse::<Gfx>().is_err(), "{text}");
        }
    }

    #[test]
    fn integrated_targets() {
        let integrated = |name: &str| name.parse::<Gfx>().unwrap().is_integrated();
        for name in [
            "gfx90c", "gfx1036", "gfx1103", "gfx1150", "gfx1151", "gfx1153",
        ] {
            assert!(integrated(name), "{name}");
        }
        for name in ["gfx90a", "gfx1030", "gfx1100", "gfx1102", "gfx1201"] {
            assert!(!integrated(name), "{name}");
        }
    }

    #[test]
    fn features_and_overrides() {
        let a: Gfx = "gfx90a:sramecc+:xnack-".parse().unwrap();
        assert_eq!(a.to_string(), "gfx90a");
        assert_eq!(Gfx::from_override("11.0.0").unwrap().to_string(), "gfx1100");
        assert_eq!(Gfx::from_override("9.0.10").unwrap().to_string(), "gfx90a");
        for bad in ["", "11", "11.0", "11.0.0.0", "11.x.0", "11.0.16"] {
            assert!(Gfx::from_override(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_target_survives_both_spellings(major in 6u32..100, minor in 0u32..16, stepping in 0u32..16) {
            let gfx = Gfx { major, minor, stepping };
            prop_assert_eq!(Gfx::from_target_version(gfx.target_version()), Some(gfx));
            prop_assert_eq!(gfx.to_string().parse(), Ok(gfx));
        }

        #[test]
        fn junk_never_panics(text in ".{0,12}", version in any::<u32>()) {
            let _ = text.parse::<Gfx>();
            let _ = Gfx::from_override(&text);
            let _ = Gfx::from_target_version(version);
        }
    }
}
