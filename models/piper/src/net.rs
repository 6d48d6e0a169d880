//! The network: a text encoder, a predictor of durations, a flow and a vocoder.
//!
//! Struct fields follow the figure in the crate's documentation.

use audiocpp::{
    graph::{Device, DeviceTensor, Scope, Tensor},
    nn::{
        Conv, ConvSize, CouplingFlow, DilatedStack, HifiGan, LayerNorm, Linear, RelativeAttention,
        Spline,
    },
    weights::{LoadError, Weights},
};

use crate::size::{DurationSize, NetSize};

/// A block of the text encoder.
pub struct EncoderBlock {
    pub attention: RelativeAttention,
    pub norm1: LayerNorm,
    pub feed_in: Conv,
    pub feed_out: Conv,
    pub norm2: LayerNorm,
}

/// Symbols to hidden states.
pub struct TextEncoder {
    /// `[symbols, hidden]`.
    pub symbols: DeviceTensor,
    pub blocks: Vec<EncoderBlock>,
    /// To means and logarithms of deviations of the latents.
    pub statistics: Linear,
}

/// One step of the stochastic predictor: from one half of its state to the spline of the other.
pub struct SplineLayer {
    pub pre: Linear,
    pub stack: DilatedStack,
    pub proj: Linear,
}

/// How long each symbol lasts.
#[allow(clippy::large_enum_variant)] // one in a model
pub enum Durations {
    /// A flow over two values a symbol, from noise to logarithms of durations.
    Stochastic {
        pre: Linear,
        condition: Option<Linear>,
        stack: DilatedStack,
        proj: Linear,
        layers: Vec<SplineLayer>,
        spline: Spline,
        /// Factor of the spline's widths and heights.
        sharpness: f32,
        /// The last step: `(x - shift) scale`, on the first value.
        shift: f32,
        scale: f32,
    },
    /// Convolutions, without noise.
    Plain {
        condition: Option<Linear>,
        conv1: Conv,
        norm1: LayerNorm,
        conv2: Conv,
        norm2: LayerNorm,
        proj: Linear,
    },
}

/// The whole network.
pub struct Net {
    pub size: NetSize,
    /// `[speakers, width]`.
    pub speakers: Option<DeviceTensor>,
    pub encoder: TextEncoder,
    pub durations: Durations,
    pub flow: CouplingFlow,
    pub vocoder: HifiGan,
}

impl Net {
    /// Fetches the weights of a network of `size`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: NetSize, device: &Device) -> Result<Net, LoadError> {
        let short = device.fast_path(audiocpp::backend::FastPath::ShortConv);
        let speakers = match size.speakers {
            (0, _) => None,
            (n, width) => Some(weights.get_f32(&[n, width], "emb_g.weight")?),
        };
        Ok(Net {
            speakers,
            encoder: TextEncoder::load(&weights.pp("enc_p"), &size, short)?,
            durations: Durations::load(&weights.pp("dp"), &size, short)?,
            flow: CouplingFlow::load(
                &weights.pp("flow"),
                &size.couplings,
                size.latent,
                size.wavenet,
                short,
            )?,
            vocoder: HifiGan::load(&weights.pp("dec"), &size.vocoder, short)?,
            size,
        })
    }

    /// The vector of the speaker with the number in `speaker`, i32 `[1]` -> `[1, 1, width]`.
    pub fn speaker<'g>(&self, scope: &'g Scope, speaker: Tensor<'g>) -> Option<Tensor<'g>> {
        let table = scope.stored(self.speakers.as_ref()?);
        Some(
            speaker
                .look_up(table)
                .reshape(&[1, 1, self.size.speakers.1]),
        )
    }
}

impl TextEncoder {
    fn load(weights: &Weights, size: &NetSize, short: bool) -> Result<TextEncoder, LoadError> {
        let encoder = weights.pp("encoder");
        let block = |i: usize| EncoderBlock::load(&encoder, i, size, short);
        Ok(TextEncoder {
            symbols: weights.get_f32(&[size.symbols, size.hidden], "emb.weight")?,
            blocks: (0..size.layers)
                .map(block)
                .collect::<Result<_, LoadError>>()?,
            statistics: Linear::load(&weights.pp("proj"), 2 * size.latent, size.hidden)?,
        })
    }

    /// Symbol numbers i32 `[n]` -> hidden states `[1, n, hidden]`.
    pub fn forward<'g>(&self, symbols: Tensor<'g>) -> Tensor<'g> {
        let [n] = symbols.dims();
        let width = self.symbols.shape()[1];
        let table = symbols.scope().stored(&self.symbols);
        let mut x = symbols
            .look_up(table)
            .scale((width as f32).sqrt())
            .reshape(&[1, n, width]);
        for block in &self.blocks {
            x = block.norm1.forward(x + block.attention.forward(x));
            let y = block.feed_out.forward(block.feed_in.forward(x).relu());
            x = block.norm2.forward(x + y);
        }
        x
    }
}

impl EncoderBlock {
    fn load(
        weights: &Weights,
        i: usize,
        size: &NetSize,
        short: bool,
    ) -> Result<EncoderBlock, LoadError> {
        let (hidden, (filter, taps)) = (size.hidden, size.feed_forward);
        let part = |room: &str| weights.pp(room).pp(i);
        let (attention, feed) = (part("attn_layers"), part("ffn_layers"));
        let linear = |name: &str| Linear::load(&attention.pp(name), hidden, hidden);
        let distances = [1, size.distances, size.head];
        let table = |name: &str| {
            let shape = [size.distances, size.head];
            attention.get_with(&shape, name, [(name, &distances[..])], move |[t]| {
                t.reshape(&shape)
            })
        };
        let conv = |name: &str, inputs, out| {
            Conv::load(&feed.pp(name), ConvSize::new(inputs, out, taps), short)
        };
        Ok(EncoderBlock {
            attention: RelativeAttention {
                query: linear("conv_q")?,
                key: linear("conv_k")?,
                value: linear("conv_v")?,
                out: linear("conv_o")?,
                distance_keys: table("emb_rel_k")?,
                distance_values: table("emb_rel_v")?,
            },
            norm1: LayerNorm::load(&part("norm_layers_1"), hidden)?,
            feed_in: conv("conv_1", hidden, filter)?,
            feed_out: conv("conv_2", filter, hidden)?,
            norm2: LayerNorm::load(&part("norm_layers_2"), hidden)?,
        })
    }
}

impl Durations {
    fn load(weights: &Weights, size: &NetSize, short: bool) -> Result<Durations, LoadError> {
        let condition = |out| match size.speakers {
            (0, _) => Ok(None),
            (_, width) => Linear::load(&weights.pp("cond"), out, width).map(Some),
        };
        match &size.durations {
            &DurationSize::Plain(width, taps) => {
                let conv = |name: &str, inputs| {
                    Conv::load(&weights.pp(name), ConvSize::new(inputs, width, taps), short)
                };
                Ok(Durations::Plain {
                    condition: condition(size.hidden)?,
                    conv1: conv("conv_1", size.hidden)?,
                    norm1: LayerNorm::load(&weights.pp("norm_1"), width)?,
                    conv2: conv("conv_2", width)?,
                    norm2: LayerNorm::load(&weights.pp("norm_2"), width)?,
                    proj: Linear::load(&weights.pp("proj"), 1, width)?,
                })
            }
            DurationSize::Stochastic {
                stack: [width, taps, layers],
                flows,
                spline,
            } => {
                let (width, parameters) = (*width, spline.parameters());
                let stack = |w: &Weights| DilatedStack::load(&w.pp("convs"), width, *taps, *layers);
                let layer = |number: &usize| {
                    let weights = weights.pp("flows").pp(number);
                    Ok(SplineLayer {
                        pre: Linear::load(&weights.pp("pre"), width, 1)?,
                        stack: stack(&weights)?,
                        proj: Linear::load(&weights.pp("proj"), parameters, width)?,
                    })
                };
                let last = weights.pp("flows.0");
                let scale = match last.has("scale") {
                    true => last.host(&[2, 1], "scale")?.data[0],
                    false => (-last.host(&[2, 1], "logs")?.data[0]).exp(),
                };
                Ok(Durations::Stochastic {
                    pre: Linear::load(&weights.pp("pre"), width, size.hidden)?,
                    condition: condition(width)?,
                    stack: stack(weights)?,
                    proj: Linear::load(&weights.pp("proj"), width, width)?,
                    layers: flows.iter().map(layer).collect::<Result<_, LoadError>>()?,
                    spline: *spline,
                    sharpness: 1.0 / (width as f32).sqrt(),
                    shift: last.host(&[2, 1], "m")?.data[0],
                    scale,
                })
            }
        }
    }

    /// Hidden states `[1, n, hidden]` -> what the spline layers are told, `[1, n, width]`, or the
    /// logarithms of the durations, `[1, n, 1]`.
    pub fn prepare<'g>(&self, x: Tensor<'g>, speaker: Option<Tensor<'g>>) -> Tensor<'g> {
        let told = |x: Tensor<'g>, linear: &Option<Linear>| match (linear, speaker) {
            (Some(linear), Some(speaker)) => x + linear.forward(speaker),
            _ => x,
        };
        match self {
            Durations::Stochastic {
                pre,
                condition,
                stack,
                proj,
                ..
            } => proj.forward(stack.forward(told(pre.forward(x), condition))),
            Durations::Plain {
                condition,
                conv1,
                norm1,
                conv2,
                norm2,
                proj,
            } => {
                let x = told(x, condition);
                let x = norm1.forward(conv1.forward(x).relu());
                proj.forward(norm2.forward(conv2.forward(x).relu()))
            }
        }
    }
}

impl SplineLayer {
    /// One half of the state `[1, n, 1]` and what [`Durations::prepare`] gave -> the parameters of
    /// a spline for each symbol, `[1, n, parameters]`.
    pub fn forward<'g>(&self, half: Tensor<'g>, told: Tensor<'g>) -> Tensor<'g> {
        let x = self.pre.forward(half) + told; // [1, n, width]
        self.proj.forward(self.stack.forward(x))
    }
}
