//! The network.

use audiocpp::{
    graph::{Conv1d, DeviceTensor, Kernel, Tensor},
    nn::{Depthwise, LayerNorm, Linear},
    weights::{LoadError, Weights},
};

use crate::size::{BlockSize, NetSize, TextSize};

/// Heads of the attention.
const HEADS: usize = 2;

#[derive(Debug, Clone)]
pub struct Net {
    pub size: NetSize,
    pub text: TextEncoder,
    pub prosody: Prosody,
    pub decoder: Decoder,
}

/// Durations and melody.
#[derive(Debug, Clone)]
pub struct Prosody {
    pub text: TextEncoder,
    durations: [Linear; 2],
    input: Linear,
    blocks: Vec<Block>,
    output: Linear,
}

#[derive(Debug, Clone)]
pub struct Decoder {
    input: Linear,
    taps: usize,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
}

#[derive(Debug, Clone)]
pub struct TextEncoder {
    /// `[symbols, width]`
    table: DeviceTensor,
    blocks: Vec<Block>,
    attention: Attention,
    rounds: usize,
    norm: LayerNorm,
}

/// A transformer's block that normalises first.
#[derive(Debug, Clone)]
struct Attention {
    norm: LayerNorm,
    /// Query, key and value below each other.
    project: Linear,
    out: Linear,
    norm_mlp: LayerNorm,
    mlp_in: Linear,
    mlp_out: Linear,
}

/// ConvNeXt (Liu et al. 2022, <https://arxiv.org/abs/2201.03545>) along time.
#[derive(Debug, Clone)]
struct Block {
    depthwise: Depthwise,
    norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
    gain: DeviceTensor,
    dilation: usize,
}

impl Net {
    /// Reads the network of `size`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: NetSize) -> Result<Net, LoadError> {
        let (m, pn) = (weights.pp("m"), weights.pp("pn"));
        let width = size.prosody.width;
        let [channels, taps] = size.decoder_input;
        let (dur, pro) = (pn.pp("dur"), pn.pp("pro"));
        Ok(Net {
            text: TextEncoder::load(&m.pp("text"), &size.text)?,
            prosody: Prosody {
                text: TextEncoder::load(&pn.pp("text"), &size.prosody)?,
                durations: [
                    conv(&dur.pp(0), width, width, 3)?,
                    Linear::load(&dur.pp(2), 1, width)?,
                ],
                input: Linear::load(&pn.pp("pro_in"), width, width)?,
                blocks: Block::load_all(&pro, &size.melody)?,
                output: Linear::load(&pn.pp("pro_out"), 4, width)?,
            },
            decoder: Decoder {
                input: conv(&m.pp("dec_in"), channels, size.text.width + 2, taps)?,
                taps,
                blocks: Block::load_all(&m.pp("dec"), &size.decoder)?,
                norm: LayerNorm::load(&m.pp("dec_norm"), channels)?,
                head: Linear::load(&m.pp("head"), 5 * size.bins, channels)?,
            },
            size,
        })
    }
}

fn conv(weights: &Weights, out: usize, inputs: usize, taps: usize) -> Result<Linear, LoadError> {
    Ok(Linear {
        weight: weights.conv1d(out, inputs, taps, "weight")?,
        bias: Some(weights.get(&[out], "bias")?),
    })
}

impl Prosody {
    /// Encoded symbols `[1, n, width]` -> for each `[1, n, 1]` the logarithm of one more than its
    /// duration.
    pub fn durations<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [first, last] = &self.durations;
        last.forward(first.conv1d(x, Conv1d::same(3)).gelu())
    }

    /// Encoded symbols, each for its duration `[1, m, width]` -> for each step `[1, m, 4]` two
    /// pitches and two loudnesses.
    pub fn melody<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let x = self.input.forward(x);
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        self.output.forward(x)
    }
}

impl Decoder {
    /// Text and melody `[1, frames, text + 2]` -> spectra in five parts `[1, frames, 5 bins]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let x = self.input.conv1d(x, Conv1d::same(self.taps));
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        self.head.forward(self.norm.forward(x))
    }
}

impl TextEncoder {
    fn load(weights: &Weights, size: &TextSize) -> Result<TextEncoder, LoadError> {
        Ok(TextEncoder {
            table: weights.table(&[size.symbols, size.width], "emb.weight")?,
            blocks: Block::load_all(&weights.pp("convs"), &size.blocks)?,
            attention: Attention::load(&weights.pp("attn"), size.width, size.hidden)?,
            rounds: size.rounds,
            norm: LayerNorm::load(&weights.pp("norm"), size.width)?,
        })
    }

    /// Symbol numbers i32 `[n]` -> `[1, n, width]`.
    pub fn forward<'g>(&self, symbols: Tensor<'g>) -> Tensor<'g> {
        let table = symbols.scope().stored(&self.table);
        let x = symbols.look_up(table); // [n, width]
        let [n, width] = x.dims();
        let x = x.reshape(&[1, n, width]);
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        let x = (0..self.rounds).fold(x, |x, _| self.attention.forward(x));
        self.norm.forward(x)
    }
}

impl Attention {
    fn load(weights: &Weights, width: usize, hidden: usize) -> Result<Attention, LoadError> {
        let heads = weights.pp("self_attn");
        Ok(Attention {
            norm: LayerNorm::load(&weights.pp("norm1"), width)?,
            project: Linear {
                weight: heads.get(&[3 * width, width], "in_proj_weight")?,
                bias: Some(heads.get(&[3 * width], "in_proj_bias")?),
            },
            out: Linear::load(&heads.pp("out_proj"), width, width)?,
            norm_mlp: LayerNorm::load(&weights.pp("norm2"), width)?,
            mlp_in: Linear::load(&weights.pp("linear1"), hidden, width)?,
            mlp_out: Linear::load(&weights.pp("linear2"), width, hidden)?,
        })
    }

    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, n, width] = x.dims();
        let [q, k, v] = self.project.parts(self.norm.forward(x));
        let heads = |x: Tensor<'g>| x.contiguous().reshape(&[1, n, HEADS, width / HEADS]);
        let scale = 1.0 / ((width / HEADS) as f32).sqrt();
        let kernel = Kernel::choose(x.scope().device());
        let mixed = heads(q).attention(heads(k), heads(v), None, scale, kernel); // [1, n, width]
        let x = x + self.out.forward(mixed);
        let y = self.mlp_in.forward(self.norm_mlp.forward(x)).gelu();
        x + self.mlp_out.forward(y)
    }
}

impl Block {
    fn load_all(weights: &Weights, sizes: &[BlockSize]) -> Result<Vec<Block>, LoadError> {
        let blocks = sizes.iter().enumerate();
        blocks
            .map(|(i, size)| Block::load(&weights.pp(i), size))
            .collect()
    }

    fn load(weights: &Weights, size: &BlockSize) -> Result<Block, LoadError> {
        let BlockSize {
            width,
            hidden,
            kernel,
            dilation,
        } = *size;
        Ok(Block {
            depthwise: Depthwise::load(&weights.pp("dw"), width, kernel)?,
            norm: LayerNorm::load(&weights.pp("norm"), width)?,
            widen: Linear::load(&weights.pp("pw1"), hidden, width)?,
            narrow: Linear::load(&weights.pp("pw2"), width, hidden)?,
            gain: weights.get_f32(&[width], "gamma")?,
            dilation,
        })
    }

    /// `[1, time, width]` -> `[1, time, width]`.
    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let y = self.norm.forward(self.depthwise.forward(x, self.dilation));
        let y = self.narrow.forward(self.widen.forward(y).gelu());
        x + y * &self.gain
    }
}
