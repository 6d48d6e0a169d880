//! How much memory a device has, joined from the sources that know a part of it.
use serde::Serialize;
use std::fmt;

/// Bytes of the host kept back when a GPU shares its memory: the rest of the system must live.
pub const HOST_RESERVE: u64 = 2 << 30;

/// Where a number came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The backend itself.
    Ggml,
    /// The kernel's video memory counters.
    Vram,
    /// The kernel's counters of video memory and of host memory mapped for the GPU.
    VramAndGtt,
    /// The host's available memory less the reserve.
    Host,
    /// Nobody knows.
    Unknown,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Ggml => "the backend",
            Source::Vram => "the kernel's count of video memory",
            Source::VramAndGtt => "the kernel's counts of video and mapped memory",
            Source::Host => "the host's available memory",
            Source::Unknown => "nobody",
        })
    }
}

/// A number of bytes with its origin; no number means unknown, which is not "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Bytes, if known.
    pub bytes: Option<u64>,
    /// Who said so.
    pub source: Source,
}

impl Amount {
    /// No source has a number.
    pub const UNKNOWN: Amount = Amount {
        bytes: None,
        source: Source::Unknown,
    };

    /// A number from a source that writes 0 for unknown.
    pub fn new(bytes: u64, source: Source) -> Amount {
        if bytes == 0 {
            return Amount::UNKNOWN;
        }
        Amount {
            bytes: Some(bytes),
            source,
        }
    }

    /// The smaller of two known amounts; the known one if only one is.
    pub fn min(self, other: Amount) -> Amount {
        match (self.bytes, other.bytes) {
            (Some(a), Some(b)) if b < a => other,
            (Some(_), _) => self,
            _ => other,
        }
    }
}

/// Memory of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// What a model may still take.
    pub free: Amount,
    /// What there is in all.
    pub total: Amount,
    /// Whether the device takes its memory from the host's.
    pub unified: bool,
}

impl Memory {
    /// Nothing is known.
    pub const UNKNOWN: Memory = Memory {
        free: Amount::UNKNOWN,
        total: Amount::UNKNOWN,
        unified: false,
    };
}

/// The kernel's counters of one AMD GPU, in bytes (`mem_info_*` of its PCI folder).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DrmMemory {
    /// Video memory.
    pub vram_total: Option<u64>,
    /// Video memory in use, by every process.
    pub vram_used: Option<u64>,
    /// Host memory that the GPU may map.
    pub gtt_total: Option<u64>,
    /// Host memory that the GPU has mapped, by every process.
    pub gtt_used: Option<u64>,
}

impl DrmMemory {
    fn free(total: Option<u64>, used: Option<u64>) -> Option<u64> {
        Some(total?.saturating_sub(used?))
    }

    fn vram_free(&self) -> Option<u64> {
        Self::free(self.vram_total, self.vram_used)
    }

    fn gtt_free(&self) -> Option<u64> {
        Self::free(self.gtt_total, self.gtt_used)
    }
}

/// Joins what the backend says (`ggml_free`, `ggml_total`; 0 is unknown) with the kernel's
/// counters and, for a GPU that shares the host's memory, the host's available bytes.
///
/// A discrete GPU has the smaller of ggml's and the kernel's free figure: HIP does not see what
/// other users of the card hold, the kernel does. An integrated one may use video memory and
/// mapped host memory, but never the last [`HOST_RESERVE`] bytes of the host.
pub fn join(
    ggml_free: u64,
    ggml_total: u64,
    drm: Option<&DrmMemory>,
    host_available: Option<u64>,
    unified: bool,
) -> Memory {
    let mut total = Amount::new(ggml_total, Source::Ggml);
    // More free than there is in all: the figure is not to be trusted.
    let plausible = ggml_total == 0 || ggml_free <= ggml_total;
    let mut free = if plausible {
        Amount::new(ggml_free, Source::Ggml)
    } else {
        Amount::UNKNOWN
    };
    if ggml_free == 0 && ggml_total > 0 {
        // A known total makes a zero a real one: the card is full.
        free = Amount {
            bytes: Some(0),
            source: Source::Ggml,
        };
    }
    let drm = drm.copied().unwrap_or_default();
    if !unified {
        let vram_free = drm.vram_free().map_or(Amount::UNKNOWN, |bytes| Amount {
            bytes: Some(bytes),
            source: Source::Vram,
        });
        if total.bytes.is_none() {
            total = Amount::new(drm.vram_total.unwrap_or(0), Source::Vram);
        }
        return Memory {
            free: free.min(vram_free),
            total,
            unified,
        };
    }
    let both = |vram: Option<u64>, gtt: Option<u64>| match (vram, gtt) {
        (None, None) => Amount::UNKNOWN,
        (vram, gtt) => Amount::new(
            vram.unwrap_or(0).saturating_add(gtt.unwrap_or(0)),
            Source::VramAndGtt,
        ),
    };
    let host_room = host_available.map(|bytes| bytes.saturating_sub(HOST_RESERVE));
    let gtt_free = match (drm.gtt_free(), host_room) {
        (Some(gtt), Some(room)) => Some(gtt.min(room)),
        (gtt, _) => gtt,
    };
    if total.bytes.is_none() {
        total = both(drm.vram_total, drm.gtt_total);
    }
    free = free.min(both(drm.vram_free(), gtt_free));
    if drm.gtt_total.is_none()
        && let Some(room) = host_room
    {
        // Without counters the host's own figure is the only bound.
        free = free.min(Amount {
            bytes: Some(room),
            source: Source::Host,
        });
    }
    Memory {
        free,
        total,
        unified,
    }
}

/// Bytes in words, with one decimal: `15.9 GiB`.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    #[test]
    fn discrete_free_is_the_smaller_view() {
        let drm = DrmMemory {
            vram_total: Some(16 * GB),
            vram_used: Some(10 * GB),
            gtt_total: Some(32 * GB),
            gtt_used: Some(0),
        };
        let memory = join(15 * GB, 16 * GB, Some(&drm), Some(60 * GB), false);
        assert_eq!(memory.free, Amount::new(6 * GB, Source::Vram));
        assert_eq!(memory.total, Amount::new(16 * GB, Source::Ggml));
        let alone = join(3 * GB, 16 * GB, None, None, false);
        assert_eq!(alone.free, Amount::new(3 * GB, Source::Ggml));
    }

    #[test]
    fn zero_total_is_unknown_and_the_kernel_may_know() {
        assert_eq!(join(0, 0, None, None, false).total, Amount::UNKNOWN);
        let drm = DrmMemory {
            vram_total: Some(8 * GB),
            vram_used: Some(GB),
            ..Default::default()
        };
        let memory = join(0, 0, Some(&drm), None, false);
        assert_eq!(memory.free.bytes, Some(7 * GB));
        assert_eq!(memory.total, Amount::new(8 * GB, Source::Vram));
        assert_eq!(join(0, 8 * GB, None, None, false).free.bytes, Some(0));
    }

    #[test]
    fn more_free_than_total_is_not_believed() {
        assert_eq!(
            join(9 * GB, 8 * GB, None, None, false).free,
            Amount::UNKNOWN
        );
    }

    #[test]
    fn unified_memory_leaves_the_host_its_reserve() {
        let drm = DrmMemory {
            vram_total: Some(GB / 2),
            vram_used: Some(GB / 4),
            gtt_total: Some(60 * GB),
            gtt_used: Some(0),
        };
        let memory = join(0, 0, Some(&drm), Some(10 * GB), true);
        assert_eq!(memory.free.bytes, Some(GB / 4 + 8 * GB));
        assert_eq!(memory.total.bytes, Some(60 * GB + GB / 2));
        let tight = join(50 * GB, 60 * GB, Some(&drm), Some(GB), true);
        assert_eq!(tight.free.bytes, Some(GB / 4));
        let blind = join(50 * GB, 60 * GB, None, Some(5 * GB), true);
        assert_eq!(blind.free, Amount::new(3 * GB, Source::Host));
    }

    #[test]
    fn words() {
        assert_eq!(human(512), "512 B");
        assert_eq!(human(GB + GB / 2), "1.5 GiB");
        assert_eq!(human(u64::MAX), "16777216.0 TiB");
    }
}
