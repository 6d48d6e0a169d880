//! The network: an audio encoder, and a text decoder that looks at its output.
//!
//! Struct fields follow the figure in the crate's documentation.

use audiocpp::{
    graph::{Conv1d, DType, DeviceTensor, Kernel, Scope, Tensor},
    nn::{LayerNorm, Linear},
};

use crate::config::Config;

/// A transformer block of the encoder.
pub struct EncoderBlock {
    pub attention_norm: LayerNorm,
    /// Query, key and value projections in one, `[3 d, d]`.
    pub qkv: Linear,
    pub attention_out: Linear,
    pub mlp_norm: LayerNorm,
    pub mlp_in: Linear,
    pub mlp_out: Linear,
}

/// Log-mel frames to audio features.
pub struct Encoder {
    /// 3 taps.
    pub conv1: Linear,
    /// 3 taps, every second step.
    pub conv2: Linear,
    /// Sinusoids `[1500, d]`.
    pub positions: DeviceTensor,
    pub blocks: Vec<EncoderBlock>,
    pub norm: LayerNorm,
}

/// A transformer block of the decoder.
pub struct DecoderBlock {
    pub self_norm: LayerNorm,
    /// Query, key and value projections in one, `[3 d, d]`.
    pub self_qkv: Linear,
    pub self_out: Linear,
    pub cross_norm: LayerNorm,
    pub cross_query: Linear,
    /// Key and value projections of the audio features in one, `[2 d, d]`.
    pub cross_kv: Linear,
    pub cross_out: Linear,
    pub mlp_norm: LayerNorm,
    pub mlp_in: Linear,
    pub mlp_out: Linear,
}

/// Audio features and earlier tokens to the next token.
pub struct Decoder {
    /// `[vocabulary, d]`; also the output projection.
    pub tokens: DeviceTensor,
    /// Learned, `[448, d]`.
    pub positions: DeviceTensor,
    pub blocks: Vec<DecoderBlock>,
    pub norm: LayerNorm,
}

/// The whole network.
pub struct Net {
    pub config: Config,
    pub encoder: Encoder,
    pub decoder: Decoder,
}

/// Keys and values of the audio for every decoder block.
pub struct CrossCache {
    /// Keys `[frames, d]`.
    pub keys: Vec<DeviceTensor>,
    /// Values `[frames, d]` for the fused kernel; `[d, frames]` for the plain one, where mixing
    /// them is a product with packed rows.
    pub values: Vec<DeviceTensor>,
    /// How attention to the audio is computed.
    pub kernel: Kernel,
}

/// Keys and values of the decoder's own tokens for every block: a pool of rows `[rows, d]`.
/// Which rows a token sees is said by a mask, so that hypotheses share their common past.
pub struct SelfCache {
    pub keys: Vec<DeviceTensor>,
    pub values: Vec<DeviceTensor>,
}

/// What one decoder run is given.
pub struct DecoderInput<'g> {
    /// Token ids, i32 `[n]`.
    pub tokens: Tensor<'g>,
    /// Place of each token in its text, i32 `[n]`.
    pub positions: Tensor<'g>,
    /// Row of the pool that each token's key and value go to, i32 `[n]`.
    pub rows: Tensor<'g>,
    /// 0 where a token (row) sees a row of the pool (column), else -inf: f16 `[n, pool]`.
    pub mask: Tensor<'g>,
    /// Where silence is shortened, the logarithm of how often each frame counts: f32
    /// `[n, frames]`.
    pub frame_weights: Option<Tensor<'g>>,
    /// How self-attention is computed.
    pub kernel: Kernel,
}

/// Which of the encoder's positions are computed.
///
/// Whisper was trained on 30 s windows, and its attention leans on the silence behind short
/// audio: leave the silence out and the text gets worse. But all of that silence looks the same
/// and its positions are smooth, so a few of its frames, each counted as often as the frames it
/// stands for, have the same effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// Frames from the start that are computed one by one.
    pub dense: usize,
    /// Positions of the silence behind them, and how many frames each stands for.
    pub tail: Vec<(usize, usize)>,
}

/// Silent frames that one computed frame stands for.
const TAIL_STRIDE: usize = 8;

impl Frames {
    /// `dense` frames one by one, and the rest of `total` as silence.
    pub fn new(dense: usize, total: usize) -> Frames {
        let tail = (dense..total)
            .step_by(TAIL_STRIDE)
            .map(|start| {
                let count = TAIL_STRIDE.min(total - start);
                (start + count / 2, count)
            })
            .collect();
        Frames { dense, tail }
    }

    /// Frames that are computed.
    pub fn computed(&self) -> usize {
        self.dense + self.tail.len()
    }

    /// Mel frames that the encoder is given: two for each dense frame, and two of silence where
    /// there is a tail, so that the last dense frame sees silence and not the edge.
    pub fn mels(&self) -> usize {
        2 * self.dense + if self.tail.is_empty() { 0 } else { 2 }
    }

    /// The logarithm of how often each computed frame counts.
    pub fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.dense];
        weights.extend(self.tail.iter().map(|(_, count)| (*count as f32).ln()));
        weights
    }
}

impl EncoderBlock {
    fn forward<'g>(
        &self,
        x: Tensor<'g>,
        mask: Option<Tensor<'g>>,
        config: &Config,
        kernel: Kernel,
    ) -> Tensor<'g> {
        let heads = config.audio_heads;
        let [q, k, v] = self
            .qkv
            .parts(self.attention_norm.forward(x))
            .map(|t: Tensor| t.split_last(heads));
        let scale = ((config.audio_width / heads) as f32).powf(-0.5);
        let x = x + self
            .attention_out
            .forward(q.attention(k, v, mask, scale, kernel));
        x + self
            .mlp_out
            .forward(self.mlp_in.forward(self.mlp_norm.forward(x)).gelu())
    }
}

impl Encoder {
    /// Log-mel `[1, mel frames, mels]` -> features `[1, computed frames, d]`. With a tail, `mask`
    /// `[computed, computed]` says how often each frame counts.
    pub fn forward<'g>(
        &self,
        mel: Tensor<'g>,
        frames: &Frames,
        mask: Option<Tensor<'g>>,
        config: &Config,
        kernel: Kernel,
    ) -> Tensor<'g> {
        let x = self.conv1.conv1d(mel, Conv1d::same(3)).gelu(); // [1, mel frames, d]
        let half = Conv1d {
            stride: 2,
            ..Conv1d::same(3)
        };
        let x = self.conv2.conv1d(x, half).gelu(); // [1, mel frames / 2, d]
        let x = self.place(x, frames); // [1, computed, d]
        let blocks = self.blocks.iter();
        let x = blocks.fold(x, |x, block| block.forward(x, mask, config, kernel));
        self.norm.forward(x)
    }

    /// Adds positions to the dense frames and puts the silent ones behind them.
    fn place<'g>(&self, x: Tensor<'g>, frames: &Frames) -> Tensor<'g> {
        let positions = x.scope().stored(&self.positions);
        let dense = x.slice(1, 0, frames.dense) + positions.slice(0, 0, frames.dense);
        let width = x.dim(-1);
        let silence = x.slice(1, frames.dense - 1, 1).reshape(&[1, width]);
        let rows = frames.tail.iter().map(|(at, _)| positions.slice(0, *at, 1));
        match rows.reduce(|all, row| all.concat(row, 0)) {
            Some(rows) => dense.concat((rows + silence).reshape(&[1, frames.tail.len(), width]), 1),
            None => dense,
        }
    }
}

impl DecoderBlock {
    /// The next hidden states `[n, d]`, and the queries to the audio `[1, n, head, d / head]`.
    fn forward<'g>(
        &self,
        x: Tensor<'g>,
        input: &DecoderInput<'g>,
        own: (&DeviceTensor, &DeviceTensor),
        audio: &Audio<'g>,
        heads: usize,
    ) -> (Tensor<'g>, Tensor<'g>) {
        let x = x + self.self_attention(x, input, own, heads);
        let [n, width] = x.dims();
        let query = self.cross_query.forward(self.cross_norm.forward(x));
        let query = query.reshape(&[1, n, width]).split_last(heads);
        let mixed = audio.attend(query).reshape(&[n, width]);
        let x = x + self.cross_out.forward(mixed);
        let x = x + self
            .mlp_out
            .forward(self.mlp_in.forward(self.mlp_norm.forward(x)).gelu());
        (x, query)
    }

    fn self_attention<'g>(
        &self,
        x: Tensor<'g>,
        input: &DecoderInput<'g>,
        (keys, values): (&DeviceTensor, &DeviceTensor),
        heads: usize,
    ) -> Tensor<'g> {
        let scope = x.scope();
        let [n, width] = x.dims();
        let [q, k, v] = self.self_qkv.parts(self.self_norm.forward(x));
        let pool = input.mask.dim(1);
        let see = |cache: &DeviceTensor, new: Tensor<'g>| {
            let all = scope.write_rows(cache, new, input.rows).slice(0, 0, pool);
            all.reshape(&[1, pool, width]).split_last(heads) // [1, pool, head, d / head]
        };
        let (k, v) = (see(keys, k), see(values, v));
        let q = q.reshape(&[1, n, width]).split_last(heads);
        let scale = ((width / heads) as f32).powf(-0.5);
        let mixed = q.attention(k, v, Some(input.mask), scale, input.kernel);
        self.self_out.forward(mixed.reshape(&[n, width]))
    }
}

/// What one decoder block hears.
pub struct Audio<'g> {
    /// `[1, frames, head, d / head]`.
    keys: Tensor<'g>,
    /// As [`CrossCache`] keeps them.
    values: Tensor<'g>,
    frame_weights: Option<Tensor<'g>>,
    kernel: Kernel,
}

impl<'g> Audio<'g> {
    fn new(input: &DecoderInput<'g>, cross: &CrossCache, block: usize, heads: usize) -> Audio<'g> {
        let scope = input.tokens.scope();
        let keys = scope.stored(&cross.keys[block]);
        let [frames, width] = keys.dims();
        Audio {
            keys: keys.reshape(&[1, frames, width]).split_last(heads),
            values: scope.stored(&cross.values[block]),
            frame_weights: input.frame_weights,
            kernel: cross.kernel,
        }
    }

    /// The values mixed for each query `[1, n, head, d / head]` -> `[1, n, d]`.
    fn attend(&self, query: Tensor<'g>) -> Tensor<'g> {
        let [_, n, heads, size] = query.dims();
        let [_, frames, ..] = self.keys.dims::<4>();
        let scale = (size as f32).powf(-0.5);
        if self.kernel == Kernel::Flash {
            let values = self.values.reshape(&[1, frames, heads, size]);
            let mask = self.frame_weights.map(|w| w.cast(DType::F16));
            return query.attention(self.keys, values, mask, scale, self.kernel);
        }
        let weights = query.attention_weights(self.keys, self.frame_weights, scale);
        let values = self.values.reshape(&[1, heads, size, frames]);
        let mixed = weights.matmul_t(values); // [1, head, n, d / head]
        mixed.permute(&[0, 2, 1, 3]).reshape(&[1, n, heads * size])
    }

    /// How one head's queries are spread over the frames: `[1, n, frames]`.
    pub fn head_weights(&self, query: Tensor<'g>, head: usize) -> Tensor<'g> {
        let [_, n, _, size] = query.dims();
        let [_, frames, ..] = self.keys.dims::<4>();
        let [query, keys] = [query, self.keys].map(|t| t.slice(2, head, 1));
        let weights = query.attention_weights(keys, self.frame_weights, (size as f32).powf(-0.5));
        weights.reshape(&[1, n, frames])
    }
}

impl Decoder {
    /// The audio's keys and values for every block, from features `[1, frames, d]` into `cache`.
    pub fn store_cross<'g>(&self, scope: &'g Scope, features: Tensor<'g>, cache: &CrossCache) {
        let [_, frames, width] = features.dims();
        for (i, block) in self.blocks.iter().enumerate() {
            let [k, v] = block.cross_kv.parts(features.reshape(&[frames, width]));
            scope.store(&cache.keys[i], k);
            let v = match cache.kernel {
                Kernel::Flash => v,
                Kernel::Plain => v.transpose(),
            };
            scope.store(&cache.values[i], v);
        }
    }

    /// Tokens -> normed hidden states `[n, d]`. `look` is shown the number of each block, its
    /// queries to the audio `[1, n, head, d / head]` and what it hears.
    pub fn hidden<'g>(
        &self,
        input: &DecoderInput<'g>,
        own: &SelfCache,
        cross: &CrossCache,
        config: &Config,
        mut look: impl FnMut(usize, Tensor<'g>, Audio<'g>),
    ) -> Tensor<'g> {
        let scope = input.tokens.scope();
        let x = input.tokens.look_up(scope.stored(&self.tokens));
        let mut x = x + input.positions.look_up(scope.stored(&self.positions)); // [n, d]
        for (i, block) in self.blocks.iter().enumerate() {
            let own = (&own.keys[i], &own.values[i]);
            let audio = Audio::new(input, cross, i, config.text_heads);
            let (next, query) = block.forward(x, input, own, &audio, config.text_heads);
            look(i, query, audio);
            x = next;
        }
        self.norm.forward(x)
    }

    /// Hidden states `[n, d]` -> scores of every token of the vocabulary `[n, vocabulary]`.
    pub fn logits<'g>(&self, hidden: Tensor<'g>) -> Tensor<'g> {
        hidden.linear(&self.tokens, None)
    }
}

/// The type of cached keys and values beside weights of `weights`: exact for f32, else half.
pub fn cache_type(weights: DType) -> DType {
    if weights == DType::F32 {
        DType::F32
    } else {
        DType::F16
    }
}
