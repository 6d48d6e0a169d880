//! The variants that are published, told apart by their stems.

/// Bins of the transform, and samples between frames.
pub const WINDOW: usize = 4096;
/// See [`WINDOW`].
pub const HOP: usize = 1024;
/// Bins from 0 to half the rate.
pub const BINS: usize = WINDOW / 2 + 1;
/// Frames that a network sees at a time.
pub const FRAMES: usize = 512;
/// Rate of the sound.
pub const RATE: u32 = 44_100;
/// Channels of the layers that halve the plane.
pub const FILTERS: [usize; 6] = [16, 32, 64, 128, 256, 512];
/// Frames and bins of a network's input are multiples of this.
pub const MULTIPLE: usize = 1 << FILTERS.len();

/// What differs between the variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The stems, in the published order.
    pub stems: Vec<String>,
    /// ELU everywhere, instead of leaky rectifiers on the way down and plain ones on the way up.
    pub elu: bool,
    /// Masks are a softmax over the stems, instead of sigmoids.
    pub softmax: bool,
}

/// Stems, in the order of the published variants: 2, 4 and 5 of them.
const VARIANTS: [(&[&str], bool, bool); 3] = [
    (&["vocals", "accompaniment"], false, false),
    (&["vocals", "drums", "bass", "other"], true, false),
    (&["vocals", "piano", "drums", "bass", "other"], true, true),
];

impl Variant {
    /// The variant that has exactly these stems, in any order.
    pub fn of(names: &[String]) -> Option<Variant> {
        let found = VARIANTS.iter().find(|(stems, _, _)| {
            stems.len() == names.len() && stems.iter().all(|stem| names.iter().any(|n| n == stem))
        });
        found.map(|&(stems, elu, softmax)| Variant {
            stems: stems.iter().map(|&stem| stem.to_owned()).collect(),
            elu,
            softmax,
        })
    }

    /// Every name of a stem.
    pub fn stem_names() -> impl Iterator<Item = &'static str> {
        VARIANTS
            .iter()
            .flat_map(|(stems, _, _)| stems.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_tell_the_variant() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
            Variant::of(&names)
        };
        let two = of(&["accompaniment", "vocals"]).unwrap();
        assert_eq!(two.stems, ["vocals", "accompaniment"]);
        assert!(!two.elu && !two.softmax);
        let four = of(&["bass", "drums", "other", "vocals"]).unwrap();
        assert!(four.elu && !four.softmax);
        assert!(
            of(&["bass", "drums", "other", "vocals", "piano"])
                .unwrap()
                .softmax
        );
        assert_eq!(of(&["vocals"]), None);
        assert_eq!(of(&["vocals", "vocals"]), None);
    }
}
