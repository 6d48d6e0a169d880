//! Sizes of the network, and how its tensors are called.

use crate::weights::{Error, Source, missing};

use super::attention::BUCKETS;

/// Sizes of a [`WavLm`](super::WavLm).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WavLmSize {
    /// Channels of the convolutions over samples.
    pub features: usize,
    /// Width of the layers.
    pub width: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Width between the two linear maps of a layer.
    pub hidden: usize,
    /// Taps of the convolution over positions.
    pub taps: usize,
    /// Its groups.
    pub groups: usize,
    /// Layers that are used.
    pub layers: usize,
}

impl WavLmSize {
    /// Those of WavLM base and base+, with the first `layers` of the 12 layers.
    pub fn base(layers: usize) -> WavLmSize {
        WavLmSize {
            features: 512,
            width: 768,
            heads: 12,
            hidden: 3072,
            taps: 128,
            groups: 16,
            layers,
        }
    }

    /// Those of the tensors in `source` below `prefix`, with the first `layers` layers.
    ///
    /// # Errors
    /// A tensor that is missing or has impossible extents.
    pub fn read(source: &dyn Source, prefix: &str, layers: usize) -> Result<WavLmSize, Error> {
        let names = Names::of(&|name| source.find(&join(prefix, name)).is_some());
        let shape = |name: &str, wanted: &[usize]| {
            let name = join(prefix, name);
            let found = source.shape(&name).map(<[usize]>::to_vec);
            let found = found.ok_or_else(|| missing(source, &name, wanted))?;
            match found.len() == wanted.len() && found.iter().all(|&n| n > 0) {
                true => Ok(found),
                false => Err(Error::Shape {
                    path: source.path().to_owned(),
                    name,
                    found,
                    wanted: wanted.to_vec(),
                }),
            }
        };
        let first = format!("{}.layers.0", names.encoder);
        let conv = shape("feature_extractor.conv_layers.0.conv.weight", &[512, 1, 10])?;
        let table = shape(
            &format!("{first}.attention.rel_attn_embed.weight"),
            &[BUCKETS, 12],
        )?;
        let dense = shape(
            &format!("{first}.feed_forward.intermediate_dense.weight"),
            &[3072, 768],
        )?;
        let positions = format!("{}.pos_conv_embed.conv", names.encoder);
        let direction = POSITION_PARTS
            .iter()
            .map(|part| format!("{positions}.{part}"))
            .find(|name| source.find(&join(prefix, name)).is_some())
            .unwrap_or_else(|| format!("{positions}.weight"));
        let kernel = shape(&direction, &[768, 48, 128])?;
        let (heads, width) = (table[1], dense[1]);
        let fits = kernel[0] == width
            && width.is_multiple_of(kernel[1])
            && width.is_multiple_of(heads)
            && kernel[2] > 1;
        match fits {
            true => Ok(WavLmSize {
                features: conv[0],
                width,
                heads,
                hidden: dense[0],
                taps: kernel[2],
                groups: width / kernel[1],
                layers,
            }),
            false => Err(Error::Shape {
                path: source.path().to_owned(),
                name: join(prefix, &direction),
                found: kernel,
                wanted: vec![width, width / 16, 128],
            }),
        }
    }
}

/// Directions of the convolution over positions, under the names of its two kinds of weight
/// normalisation.
pub(super) const POSITION_PARTS: [&str; 2] = ["weight_v", "parametrizations.weight.original1"];

fn join(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}.{name}"),
    }
}

/// Where the parts are: torchaudio puts the projection below the encoder, transformers beside it.
pub(super) struct Names {
    pub projection: &'static str,
    pub encoder: &'static str,
}

impl Names {
    pub fn of(has: &dyn Fn(&str) -> bool) -> Names {
        match has("feature_projection.projection.weight") {
            true => Names {
                projection: "feature_projection",
                encoder: "encoder",
            },
            false => Names {
                projection: "encoder.feature_projection",
                encoder: "encoder.transformer",
            },
        }
    }
}
