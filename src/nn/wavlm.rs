//! WavLM (Chen et al. 2021, WavLM: Large-Scale Self-Supervised Pre-Training for Full Stack Speech
//! Processing, <https://arxiv.org/abs/2110.13900>), of the kind of the base models: what speech
//! sounds like at each of its layers.
//!
//! ```text
//!   samples, 16 kHz
//!      |  7 convolutions (the first normalised), GELU: 320 samples to a step
//!   norm, linear
//!      |  + grouped convolution over 128 steps, GELU; norm
//!   layers: x = norm(x + attention(x)); x = norm(x + linear(gelu(linear(x))))
//!           where scores of attention get a bias by distance, through a gate for each query
//! ```

use crate::{
    graph::{Conv1d, Curve, DeviceTensor, Tensor},
    weights::{Error, HostTensor, LoadError, Source, Weights, missing},
};

use super::{LayerNorm, Linear, constant::constant};

/// Taps and stride of the convolutions over samples.
const CONVS: [[usize; 2]; 7] = [[10, 5], [3, 2], [3, 2], [3, 2], [3, 2], [2, 2], [2, 2]];
/// Distances that have a bucket of their own; half of the buckets of one direction.
const EXACT: usize = 80;
/// Distance from which on all share a bucket.
const FAR: usize = 800;
/// Buckets of distances, half of them for later positions.
const BUCKETS: usize = 4 * EXACT;

/// Sizes of a [`WavLm`].
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
const POSITION_PARTS: [&str; 2] = ["weight_v", "parametrizations.weight.original1"];

fn join(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}.{name}"),
    }
}

/// Where the parts are: torchaudio puts the projection below the encoder, transformers beside it.
struct Names {
    projection: &'static str,
    encoder: &'static str,
}

impl Names {
    fn of(has: &dyn Fn(&str) -> bool) -> Names {
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

/// The network.
pub struct WavLm {
    convs: Vec<DeviceTensor>,
    /// Gain and bias after the first convolution, of each channel over time.
    first_norm: [DeviceTensor; 2],
    projection_norm: LayerNorm,
    projection: Linear,
    positions: PositionConv,
    norm: LayerNorm,
    /// Bias of each bucket and head `[buckets, head]`.
    distances: HostTensor,
    layers: Vec<Layer>,
    size: WavLmSize,
}

impl WavLm {
    /// Reads the names of torchaudio or of transformers, below `weights`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: WavLmSize) -> Result<WavLm, LoadError> {
        let names = Names::of(&|name| weights.has(name));
        let convs = weights.pp("feature_extractor.conv_layers");
        let conv = |(i, [taps, _]): (usize, &[usize; 2])| {
            let inputs = if i == 0 { 1 } else { size.features };
            let at = convs.pp(i).pp("conv");
            at.conv1d(size.features, inputs, *taps, "weight")
        };
        let first = convs.pp("0.layer_norm");
        let projection = weights.pp(names.projection);
        let encoder = weights.pp(names.encoder);
        let layers = encoder.pp("layers");
        Ok(WavLm {
            convs: CONVS
                .iter()
                .enumerate()
                .map(conv)
                .collect::<Result<_, _>>()?,
            first_norm: [
                first.get_f32(&[size.features], "weight")?,
                first.get_f32(&[size.features], "bias")?,
            ],
            projection_norm: LayerNorm::load(&projection.pp("layer_norm"), size.features)?,
            projection: Linear::load(&projection.pp("projection"), size.width, size.features)?,
            positions: PositionConv::load(&encoder.pp("pos_conv_embed.conv"), &size)?,
            norm: LayerNorm::load(&encoder.pp("layer_norm"), size.width)?,
            distances: layers.host(&[BUCKETS, size.heads], "0.attention.rel_attn_embed.weight")?,
            layers: (0..size.layers)
                .map(|i| Layer::load(&layers.pp(i), &size))
                .collect::<Result<_, _>>()?,
            size,
        })
    }

    /// Samples that give exactly so many steps, none to spare.
    pub fn samples_for(steps: usize) -> usize {
        CONVS
            .iter()
            .rev()
            .fold(steps.max(1), |n, [taps, stride]| (n - 1) * stride + taps)
    }

    /// Samples `[1, n, 1]` at 16 kHz -> what each of the first `count` layers makes of them,
    /// `[1, step, width]`. `tap` is shown the values in between, by name.
    pub fn forward<'g>(
        &self,
        samples: Tensor<'g>,
        count: usize,
        tap: &dyn Fn(&str, Tensor<'g>),
    ) -> Vec<Tensor<'g>> {
        let scope = samples.scope();
        let mut x = samples;
        for (i, (weight, [taps, stride])) in self.convs.iter().zip(CONVS).enumerate() {
            x = x.conv1d(weight, None, strided(taps, stride)); // [1, step, feature]
            if i == 0 {
                let [gain, bias] = self.first_norm.each_ref().map(|t| scope.stored(t));
                x = x.channel_norm(gain, bias, 1e-5, Curve::Line);
            }
            x = x.gelu();
            tap(&format!("conv{i}"), x);
        }
        let x = self.projection.forward(self.projection_norm.forward(x)); // [1, step, width]
        tap("projection", x);
        let positions = self.positions.forward(x);
        tap("positions", positions);
        let mut x = self.norm.forward(x + positions);
        tap("encoder_in", x);
        let steps = x.dim(1);
        let shape = [self.size.heads, steps, steps];
        let bias = constant(scope, &shape, &by_position(&self.distances, steps));
        tap("bias", bias);
        let mut outputs = Vec::with_capacity(self.layers.len());
        for (i, layer) in self.layers.iter().take(count).enumerate() {
            let heard = layer.attention.forward(x, bias);
            tap(&format!("layer{}_attention", i + 1), heard);
            x = layer.after(x + heard);
            outputs.push(x);
        }
        outputs
    }
}

fn strided(kernel: usize, stride: usize) -> Conv1d {
    Conv1d {
        kernel,
        stride,
        dilation: 1,
        padding: (0, 0),
    }
}

/// The bucket of a distance from query to key.
fn bucket(distance: isize) -> usize {
    let (later, far) = (distance > 0, distance.unsigned_abs());
    let steps = match far < EXACT {
        true => far,
        false => {
            let octaves = (far as f32 / EXACT as f32).ln() / (FAR as f32 / EXACT as f32).ln();
            (EXACT + (octaves * EXACT as f32) as usize).min(2 * EXACT - 1)
        }
    };
    steps + if later { 2 * EXACT } else { 0 }
}

/// The bias of each head, query and key: `[head, steps, steps]`.
fn by_position(table: &HostTensor, steps: usize) -> Vec<f32> {
    let heads = table.shape[1];
    let span = steps as isize - 1;
    let mut bias = Vec::with_capacity(heads * steps * steps);
    for head in 0..heads {
        let line: Vec<f32> = (-span..=span)
            .map(|distance| table.data[bucket(distance) * heads + head])
            .collect();
        for query in 0..steps {
            let start = steps - 1 - query;
            bias.extend_from_slice(&line[start..start + steps]);
        }
    }
    bias
}

/// The convolution that tells positions: a product for each group.
struct PositionConv {
    groups: Vec<Linear>,
    taps: usize,
}

impl PositionConv {
    fn load(weights: &Weights, size: &WavLmSize) -> Result<PositionConv, LoadError> {
        let (taps, each) = (size.taps, size.width / size.groups);
        let whole = [size.width, each, taps];
        let shape = [each, taps * each];
        let group = |g: usize| {
            let rows = g * each..(g + 1) * each;
            let cut = rows.clone();
            let label = format!("weight of group {g}");
            let parts = [("weight_g", POSITION_PARTS[0]), {
                let gain = "parametrizations.weight.original0";
                (gain, POSITION_PARTS[1])
            }];
            let weight = match parts.into_iter().find(|(gain, _)| weights.has(gain)) {
                Some((gain, direction)) => {
                    let gains = [1, 1, taps];
                    let parts = [(gain, &gains[..]), (direction, &whole[..])];
                    weights.get_with(&shape, &label, parts, move |[gain, direction]| {
                        let gains = tap_gains(&gain, &direction);
                        let mut part = direction.rows(cut.clone());
                        let values = part.data.iter_mut().zip(gains.iter().cycle());
                        values.for_each(|(value, gain)| *value *= gain);
                        part.conv_matrix()
                    })?
                }
                None => {
                    let parts = [("weight", &whole[..])];
                    weights.get_with(&shape, &label, parts, move |[w]| {
                        w.rows(cut.clone()).conv_matrix()
                    })?
                }
            };
            Ok(Linear {
                weight,
                bias: Some(weights.slice(&[size.width], "bias", rows)?),
            })
        };
        Ok(PositionConv {
            groups: (0..size.groups)
                .map(group)
                .collect::<Result<_, LoadError>>()?,
            taps,
        })
    }

    /// `[1, step, width]` -> `[1, step, width]`. An even kernel has no middle: it reaches farther
    /// back than ahead.
    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let each = x.dim(2) / self.groups.len();
        let shape = Conv1d {
            padding: (self.taps / 2, (self.taps - 1) / 2),
            ..strided(self.taps, 1)
        };
        let mut all: Option<Tensor<'g>> = None;
        for (g, group) in self.groups.iter().enumerate() {
            let part = x.slice(2, g * each, each).contiguous();
            let y = group.conv1d(part, shape);
            all = Some(all.map_or(y, |all| all.concat(y, 2)));
        }
        all.unwrap_or(x).gelu()
    }
}

/// What the values of each tap are multiplied by: its gain over the norm of all values there.
fn tap_gains(gain: &HostTensor, direction: &HostTensor) -> Vec<f32> {
    let taps = gain.data.len();
    let mut squares = vec![0.0f64; taps];
    for row in direction.data.chunks_exact(taps) {
        let sums = squares.iter_mut().zip(row);
        sums.for_each(|(sum, v)| *sum += f64::from(*v).powi(2));
    }
    let pairs = gain.data.iter().zip(squares);
    pairs
        .map(|(gain, sum)| (f64::from(*gain) / sum.sqrt()) as f32)
        .collect()
}

struct Layer {
    attention: GatedAttention,
    norm: LayerNorm,
    hidden: [Linear; 2],
    final_norm: LayerNorm,
}

impl Layer {
    fn load(weights: &Weights, size: &WavLmSize) -> Result<Layer, LoadError> {
        let (width, hidden) = (size.width, size.hidden);
        let dense = weights.pp("feed_forward");
        Ok(Layer {
            attention: GatedAttention::load(&weights.pp("attention"), size)?,
            norm: LayerNorm::load(&weights.pp("layer_norm"), width)?,
            hidden: [
                Linear::load(&dense.pp("intermediate_dense"), hidden, width)?,
                Linear::load(&dense.pp("output_dense"), width, hidden)?,
            ],
            final_norm: LayerNorm::load(&weights.pp("final_layer_norm"), width)?,
        })
    }

    /// What follows attention: `[1, step, width]` -> `[1, step, width]`.
    fn after<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let x = self.norm.forward(x);
        let [first, second] = &self.hidden;
        self.final_norm
            .forward(x + second.forward(first.forward(x).gelu()))
    }
}

/// Attention with a bias by distance, which each query lets through as far as its gate is open.
struct GatedAttention {
    query_key_value: Linear,
    out: Linear,
    /// From a head's part of the input to the two halves of the gate, and the gate's constant
    /// `[head, 1]`.
    gate: Linear,
    constant: DeviceTensor,
}

impl GatedAttention {
    fn load(weights: &Weights, size: &WavLmSize) -> Result<GatedAttention, LoadError> {
        let (width, heads) = (size.width, size.heads);
        let each = width / heads;
        let gate = weights.pp("gru_rel_pos_linear");
        // Each half of the gate is a sum of four outputs: one output of the sum of the weights.
        let matrix = gate.get_with(
            &[2, each],
            "weight",
            [("weight", &[8, each])],
            move |[w]| {
                let four = |rows: &[f32], i: usize| rows.iter().skip(i).step_by(each).sum::<f32>();
                let halves = w.data.chunks_exact(4 * each);
                let sums = halves.flat_map(|rows| (0..each).map(move |i| four(rows, i)));
                HostTensor::new(&[2, each], sums.collect())
            },
        )?;
        let vector = gate.get_with(&[2], "bias", [("bias", &[8])], |[b]| {
            let sums = b.data.chunks_exact(4).map(|four| four.iter().sum());
            HostTensor::new(&[2], sums.collect())
        })?;
        let joint = weights.pp("attention");
        let apart = ["q_proj", "k_proj", "v_proj"];
        let stacked = |shape: &[usize], part: &str| {
            let names = apart.map(|name| format!("{name}.{part}"));
            let parts = names.each_ref().map(|name| (Some(name.as_str()), width));
            weights.rows(shape, &parts)
        };
        let (rows, row) = ([3 * width, width], [3 * width]);
        let (query_key_value, out) = match weights.has("q_proj.weight") {
            true => (
                Linear {
                    weight: stacked(&rows, "weight")?,
                    bias: Some(stacked(&row, "bias")?),
                },
                weights.pp("out_proj"),
            ),
            false => (
                Linear {
                    weight: joint.get(&rows, "in_proj_weight")?,
                    bias: Some(joint.get(&row, "in_proj_bias")?),
                },
                joint.pp("out_proj"),
            ),
        };
        Ok(GatedAttention {
            query_key_value,
            out: Linear::load(&out, width, width)?,
            gate: Linear {
                weight: matrix,
                bias: Some(vector),
            },
            constant: weights.get_f32(&[heads, 1], "gru_rel_pos_const")?,
        })
    }

    /// x `[1, step, width]`, bias `[head, step, step]` -> `[1, step, width]`.
    fn forward<'g>(&self, x: Tensor<'g>, bias: Tensor<'g>) -> Tensor<'g> {
        let [_, steps, width] = x.dims();
        let heads = bias.dim(0);
        let each = width / heads;
        let split = |y: Tensor<'g>| {
            let y = y.contiguous().reshape(&[steps, heads, each]);
            y.permute(&[1, 0, 2]).contiguous() // [head, step, each]
        };
        let [q, k, v] = self.query_key_value.parts(x).map(split);
        let mask = bias * self.gates(x.reshape(&[steps, heads, each]));
        let scale = 1.0 / (each as f32).sqrt();
        let weights = q.matmul_t(k).softmax(scale, Some(mask)); // [head, step, step]
        let mixed = weights.matmul_t(v.transpose().contiguous()); // [head, step, each]
        self.out
            .forward(mixed.permute(&[1, 0, 2]).reshape(&[1, steps, width]))
    }

    /// How far each head lets the bias of each query through: `[step, head, each]` ->
    /// `[head, step, 1]`.
    fn gates<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [a, b] = self.gate.forward(x).sigmoid().split::<2>(-1); // [step, head, 1]
        let inner = b.contiguous() * &self.constant;
        let gate = a.contiguous() * inner.scale_add(1.0, -1.0);
        gate.scale_add(1.0, 2.0).permute(&[1, 0, 2]).contiguous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_take_320_samples_each_and_80_more() {
        assert_eq!(WavLm::samples_for(1), 400);
        assert_eq!(WavLm::samples_for(73), 72 * 320 + 400);
    }

    #[test]
    fn distances_share_buckets_the_farther_the_more() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(-79), 79);
        assert_eq!(bucket(79), 239);
        assert_eq!(bucket(-80), 80);
        assert_eq!(bucket(-81), 80);
        assert_eq!(bucket(-800), 159);
        assert_eq!(bucket(5000), 319);
        let table = HostTensor::new(&[BUCKETS, 1], (0..BUCKETS).map(|i| i as f32).collect());
        let wanted = [0.0, 161.0, 162.0, 1.0, 0.0, 161.0, 2.0, 1.0, 0.0];
        assert_eq!(by_position(&table, 3), wanted);
    }

    #[test]
    fn gains_are_of_taps() {
        let gain = HostTensor::new(&[1, 1, 2], vec![10.0, 1.0]);
        let direction = HostTensor::new(&[2, 1, 2], vec![3.0, 0.0, 4.0, 2.0]);
        assert_eq!(tap_gains(&gain, &direction), [2.0, 0.5]);
    }
}
