//! From phonemes to durations, pitch and energy.
//!
//! Struct fields follow the figure in the crate's documentation.

use audiocpp::{
    graph::{Around, Curve, Device, DeviceTensor, Tensor},
    nn::{AdaIn, AdaLayerNorm, BiLstm, Conv, ConvSize, DepthwiseDouble, LayerNorm, Linear, twice},
    weights::{LoadError, Weights},
};

use crate::{
    decoder::Decoder,
    size::{BertSize, NetSize},
};

/// Slope of the leaky rectifiers outside the vocoder.
const SLOPE: f32 = 0.2;

/// ALBERT, whose one layer is run again and again.
pub struct Bert {
    pub words: DeviceTensor,
    pub positions: DeviceTensor,
    /// The first row is added to every word.
    pub kind: DeviceTensor,
    pub norm: LayerNorm,
    pub widen: Conv,
    pub query: Conv,
    pub key: Conv,
    pub value: Conv,
    pub out: Conv,
    pub norm1: LayerNorm,
    pub feed_in: Conv,
    pub feed_out: Conv,
    pub norm2: LayerNorm,
    pub size: BertSize,
}

/// Phonemes to what the decoder reads.
pub struct TextEncoder {
    pub symbols: DeviceTensor,
    pub convs: Vec<(Conv, LayerNorm)>,
    pub lstm: BiLstm,
}

/// A residual block that follows the style.
pub struct Block {
    pub norm1: AdaIn,
    /// Twice as many steps, where the block does that.
    pub double: Option<DepthwiseDouble>,
    pub conv1: Conv,
    pub norm2: AdaIn,
    pub conv2: Conv,
    /// Where its input and output differ in width.
    pub shortcut: Option<Conv>,
}

/// Pitch or energy.
pub struct Branch {
    pub blocks: Vec<Block>,
    pub proj: Linear,
}

/// Durations, pitch and energy.
pub struct Predictor {
    pub encoder: Vec<(BiLstm, AdaLayerNorm)>,
    pub lstm: BiLstm,
    pub durations: Linear,
    pub shared: BiLstm,
    pub pitch: Branch,
    pub energy: Branch,
}

/// The whole network.
pub struct Net {
    pub size: NetSize,
    pub bert: Bert,
    pub bert_encoder: Conv,
    pub text_encoder: TextEncoder,
    pub predictor: Predictor,
    pub decoder: Decoder,
}

/// What is known of the phonemes before they have durations.
pub struct Encoded<'g> {
    /// Hidden states of the language model `[1, n, hidden of it]`.
    pub bert: Tensor<'g>,
    /// What the decoder reads of each phoneme `[1, n, hidden]`.
    pub text: Tensor<'g>,
    /// What pitch and energy are made of `[1, n, hidden + style]`.
    pub prosody: Tensor<'g>,
    /// The durations in frames are sums of their logistic functions `[1, n, longest]`.
    pub durations: Tensor<'g>,
}

impl Net {
    /// Fetches the weights of a network of `size`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: NetSize, device: &Device) -> Result<Net, LoadError> {
        let short = device.fast_path(audiocpp::backend::FastPath::ShortConv);
        Ok(Net {
            bert: Bert::load(&weights.pp("bert"), size.bert, short)?,
            bert_encoder: one_tap(
                &weights.pp("bert_encoder"),
                [size.bert.hidden, size.hidden],
                short,
            )?,
            text_encoder: TextEncoder::load(&weights.pp("text_encoder"), &size, short)?,
            predictor: Predictor::load(&weights.pp("predictor"), &size, short)?,
            decoder: Decoder::load(&weights.pp("decoder"), &size, short)?,
            size,
        })
    }

    /// Phoneme numbers i32 `[n]`, their positions i32 `[n]`, the prosodic style `[1, style]`.
    pub fn encode<'g>(
        &self,
        symbols: Tensor<'g>,
        positions: Tensor<'g>,
        style: Tensor<'g>,
    ) -> Encoded<'g> {
        let bert = self.bert.forward(symbols, positions);
        let x = self.bert_encoder.forward(bert); // [1, n, hidden]
        let prosody = self.predictor.encode(x, style);
        let durations = self
            .predictor
            .durations
            .forward(self.predictor.lstm.forward(prosody));
        Encoded {
            bert,
            text: self.text_encoder.forward(symbols),
            prosody,
            durations,
        }
    }
}

impl Bert {
    fn load(weights: &Weights, size: BertSize, short: bool) -> Result<Bert, LoadError> {
        let (tables, encoder) = (weights.pp("embeddings"), weights.pp("encoder"));
        let layer = encoder.pp("albert_layer_groups.0.albert_layers.0");
        let attention = layer.pp("attention");
        let (d, f) = (size.hidden, size.feed_forward);
        let table = |name: &str, rows| tables.pp(name).get_f32(&[rows, size.embedding], "weight");
        let norm = |weights: &Weights, width| {
            let norm = LayerNorm::load(weights, width)?;
            Ok::<_, LoadError>(LayerNorm { eps: 1e-12, ..norm })
        };
        let linear = |name: &str| one_tap(&attention.pp(name), [d, d], short);
        Ok(Bert {
            words: table("word_embeddings", size.symbols)?,
            positions: table("position_embeddings", size.positions)?,
            kind: table("token_type_embeddings", 2)?,
            norm: norm(&tables.pp("LayerNorm"), size.embedding)?,
            widen: one_tap(
                &encoder.pp("embedding_hidden_mapping_in"),
                [size.embedding, d],
                short,
            )?,
            query: linear("query")?,
            key: linear("key")?,
            value: linear("value")?,
            out: linear("dense")?,
            norm1: norm(&attention.pp("LayerNorm"), d)?,
            feed_in: one_tap(&layer.pp("ffn"), [d, f], short)?,
            feed_out: one_tap(&layer.pp("ffn_output"), [f, d], short)?,
            norm2: norm(&layer.pp("full_layer_layer_norm"), d)?,
            size,
        })
    }

    /// i32 `[n]` and `[n]` -> `[1, n, hidden]`.
    pub fn forward<'g>(&self, symbols: Tensor<'g>, positions: Tensor<'g>) -> Tensor<'g> {
        let [n] = symbols.dims();
        let scope = symbols.scope();
        let kind = scope.stored(&self.kind).slice(0, 0, 1);
        let x = symbols.look_up(scope.stored(&self.words))
            + positions.look_up(scope.stored(&self.positions))
            + kind; // [n, embedding]
        let mut x = self
            .widen
            .forward(self.norm.forward(x).reshape(&[1, n, self.size.embedding]));
        for _ in 0..self.size.layers {
            let y = self.norm1.forward(x + self.attention(x));
            let feed = self.feed_out.forward(gelu(self.feed_in.forward(y)));
            x = self.norm2.forward(feed + y);
        }
        x
    }

    fn attention<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, n, d] = x.dims();
        let (heads, width) = (self.size.heads, d / self.size.heads);
        let split = |linear: &Conv| {
            let y = linear.forward(x).reshape(&[n, heads, width]);
            y.permute(&[1, 0, 2]).contiguous() // [head, n, width]
        };
        let [q, k, v] = [&self.query, &self.key, &self.value].map(split);
        let scale = 1.0 / (width as f32).sqrt();
        let weights = q.matmul_t(k).softmax(scale, None); // [head, n, n]
        let mixed = weights.matmul_t(v.transpose().contiguous());
        self.out
            .forward(mixed.permute(&[1, 0, 2]).reshape(&[1, n, d]))
    }
}

/// An affine map of every step, as a convolution of one tap: with `short`, its weights lie ready
/// for the product.
pub(crate) fn one_tap(
    weights: &Weights,
    [inputs, out]: [usize; 2],
    short: bool,
) -> Result<Conv, LoadError> {
    Conv::load(weights, ConvSize::new(inputs, out, 1), short)
}

/// GELU in its tanh approximation, to f32's precision (ggml's own is a table of half floats):
/// x σ(2 sqrt(2 / π) (x + 0.044715 x³)).
fn gelu(x: Tensor<'_>) -> Tensor<'_> {
    const LINEAR: f32 = 1.595_769;
    let slope = x.sqr().scale_add(LINEAR * 0.044_715, LINEAR);
    x * (x * slope).sigmoid()
}

impl TextEncoder {
    fn load(weights: &Weights, size: &NetSize, short: bool) -> Result<TextEncoder, LoadError> {
        let d = size.hidden;
        let conv = |i: usize| {
            let layer = weights.pp("cnn").pp(i);
            let conv = Conv::load(
                &layer.pp(0),
                ConvSize::new(d, d, size.convs.1).seldom(),
                short,
            )?;
            Ok((conv, LayerNorm::load(&layer.pp(1), d)?))
        };
        Ok(TextEncoder {
            symbols: weights
                .pp("embedding")
                .get_f32(&[size.symbols, d], "weight")?,
            convs: (0..size.convs.0)
                .map(conv)
                .collect::<Result<_, LoadError>>()?,
            lstm: BiLstm::load(&weights.pp("lstm"), d, d / 2, short)?,
        })
    }

    /// i32 `[n]` -> `[1, n, hidden]`.
    pub fn forward<'g>(&self, symbols: Tensor<'g>) -> Tensor<'g> {
        let [n] = symbols.dims();
        let x = symbols.look_up(symbols.scope().stored(&self.symbols));
        let mut x = x.reshape(&[1, n, self.symbols.shape()[1]]);
        for (conv, norm) in &self.convs {
            x = norm.forward(conv.forward(x)).leaky_relu(SLOPE);
        }
        self.lstm.forward(x)
    }
}

impl Block {
    /// Reads a block of `inputs` channels in and `out` channels out.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        [inputs, out]: [usize; 2],
        style: usize,
        short: bool,
    ) -> Result<Block, LoadError> {
        let pool = weights.pp("pool");
        let conv = |name: &str, inputs| {
            Conv::load(
                &weights.pp(name),
                ConvSize::new(inputs, out, 3).seldom(),
                short,
            )
        };
        Ok(Block {
            norm1: AdaIn::load(&weights.pp("norm1"), style, inputs, short)?,
            double: match pool.has("bias") {
                true => Some(DepthwiseDouble::load(&pool, inputs)?),
                false => None,
            },
            conv1: conv("conv1", inputs)?,
            norm2: AdaIn::load(&weights.pp("norm2"), style, out, short)?,
            conv2: conv("conv2", out)?,
            shortcut: match inputs == out {
                true => None,
                false => Some(one_tap(&weights.pp("conv1x1"), [inputs, out], short)?),
            },
        })
    }

    /// x `[1, time, inputs]`, style `[1, style]` -> `[1, time or twice that, out]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, style: Tensor<'g>) -> Tensor<'g> {
        let leaky = Curve::Leaky(SLOPE);
        let mut y = self.norm1.forward(x, style, leaky);
        let mut beside = match &self.shortcut {
            Some(conv) => conv.forward(x),
            None => x,
        };
        if let Some(double) = &self.double {
            y = double.forward(y);
            beside = twice(beside);
        }
        let y = self.norm2.forward(self.conv1.forward(y), style, leaky);
        let around = Around {
            plus: &[beside],
            scale: std::f32::consts::FRAC_1_SQRT_2,
            ..Around::default()
        };
        self.conv2.around(y, around)
    }
}

impl Branch {
    fn load(
        weights: &Weights,
        name: &str,
        size: &NetSize,
        short: bool,
    ) -> Result<Branch, LoadError> {
        let d = size.hidden;
        let mut width = d;
        let mut blocks = Vec::new();
        for i in 0..size.prosody {
            let block = weights.pp(name).pp(i);
            // From the block that doubles the steps on it is half as wide.
            let out = if block.pp("pool").has("bias") {
                d / 2
            } else {
                width
            };
            blocks.push(Block::load(&block, [width, out], size.style, short)?);
            width = out;
        }
        Ok(Branch {
            blocks,
            proj: Linear::load(&weights.pp(format!("{name}_proj")), 1, width)?,
        })
    }

    /// x `[1, frames, hidden]`, style `[1, style]` -> `[1, 2 frames, 1]`.
    pub fn forward<'g>(&self, x: Tensor<'g>, style: Tensor<'g>) -> Tensor<'g> {
        let through = |x, block: &Block| block.forward(x, style);
        self.proj.forward(self.blocks.iter().fold(x, through))
    }
}

impl Predictor {
    fn load(weights: &Weights, size: &NetSize, short: bool) -> Result<Predictor, LoadError> {
        let (d, wide) = (size.hidden, size.hidden + size.style);
        let lstm = |weights: &Weights| BiLstm::load(weights, wide, d / 2, short);
        let layers = weights.pp("text_encoder.lstms");
        let layer = |i: usize| {
            let norm = AdaLayerNorm::load(&layers.pp(2 * i + 1), size.style, d, short)?;
            Ok((lstm(&layers.pp(2 * i))?, norm))
        };
        Ok(Predictor {
            encoder: (0..size.layers)
                .map(layer)
                .collect::<Result<_, LoadError>>()?,
            lstm: lstm(&weights.pp("lstm"))?,
            durations: Linear::load(&weights.pp("duration_proj.linear_layer"), size.longest, d)?,
            shared: lstm(&weights.pp("shared"))?,
            pitch: Branch::load(weights, "F0", size, short)?,
            energy: Branch::load(weights, "N", size, short)?,
        })
    }

    /// x `[1, n, hidden]`, style `[1, style]` -> `[1, n, hidden + style]`.
    pub fn encode<'g>(&self, x: Tensor<'g>, style: Tensor<'g>) -> Tensor<'g> {
        let [_, n, _] = x.dims();
        let width = style.dim(-1);
        let beside = style.reshape(&[1, 1, width]).broadcast(&[1, n, width]);
        let mut x = x.concat(beside, 2);
        for (lstm, norm) in &self.encoder {
            x = norm.forward(lstm.forward(x), style).concat(beside, 2);
        }
        x
    }

    /// What [`encode`](Self::encode) gave, each for its duration, `[1, frames, hidden + style]`,
    /// style `[1, style]` -> pitch in Hz and energy, `[1, 2 frames, 1]` each.
    pub fn prosody<'g>(&self, x: Tensor<'g>, style: Tensor<'g>) -> [Tensor<'g>; 2] {
        let x = self.shared.forward(x); // [1, frames, hidden]
        [&self.pitch, &self.energy].map(|branch| branch.forward(x, style))
    }
}
