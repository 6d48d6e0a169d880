//! A causal language model of the Qwen2 and Qwen3 kind: pre-norm blocks of grouped-query attention
//! (Ainslie et al. 2023, <https://arxiv.org/abs/2305.13245>) with rotary positions, and SwiGLU.
//!
//! Keys and values lie in one pool of rows. A step is told into which rows its tokens' keys and
//! values go, and a mask says which rows each token sees; so several texts share the pool, and one
//! graph serves every place in a text.

use half::f16;

use super::{Linear, RmsNorm};
use crate::{
    graph::{BufferBuilder, DType, Device, DeviceTensor, Glu, GraphError, Kernel, Tensor},
    weights::{LoadError, Weights},
};

/// What shapes a [`CausalLm`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CausalLmSize {
    /// Values of a hidden state.
    pub width: usize,
    /// Blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Values of a head.
    pub head_width: usize,
    /// Inner values of the feed-forward network.
    pub ffn: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Added to the mean of squares in normalisations.
    pub eps: f32,
    /// Base of the rotary positions' periods.
    pub rotary_base: f32,
    /// Whether query, key and value projections have biases (Qwen2).
    pub qkv_bias: bool,
    /// Whether queries and keys are normalised by head (Qwen3).
    pub qk_norm: bool,
    /// Whether there is a norm after the last block.
    pub final_norm: bool,
}

/// A transformer block.
#[derive(Debug, Clone)]
pub struct CausalBlock {
    /// Before attention.
    pub attention_norm: RmsNorm,
    /// Query, key and value projections in one.
    pub qkv: Linear,
    /// Of each head's queries, then keys.
    pub qk_norm: Option<[RmsNorm; 2]>,
    /// The projection of the mixed values.
    pub attention_out: Linear,
    /// Before the feed-forward network.
    pub ffn_norm: RmsNorm,
    /// Gate, then value, `[2 ffn, width]`.
    pub gate_up: Linear,
    /// Back to the width.
    pub down: Linear,
}

/// Embeddings and blocks.
#[derive(Debug, Clone)]
pub struct CausalLm {
    /// `[vocab, width]`.
    pub embeddings: Option<DeviceTensor>,
    /// In order.
    pub blocks: Vec<CausalBlock>,
    /// After them.
    pub norm: Option<RmsNorm>,
    /// What shapes it.
    pub size: CausalLmSize,
}

/// Where the tokens of a step stand.
#[derive(Debug, Clone, Copy)]
pub struct Place<'g> {
    /// Place of each token in its text, i32 `[n]`.
    pub positions: Tensor<'g>,
    /// Row of the pool that each token's key and value go to, i32 `[n]`.
    pub rows: Tensor<'g>,
    /// 0 where a token (row) sees a row of the pool (column), else -inf: f16 `[n, pool]`.
    pub mask: Tensor<'g>,
    /// How attention is computed.
    pub kernel: Kernel,
}

/// Keys and values of a pool of rows, `[rows, kv heads * head width]` for each block.
#[derive(Debug, Clone)]
pub struct KvCache {
    /// Of each block, after the rotary positions.
    pub keys: Vec<DeviceTensor>,
    /// Of each block.
    pub values: Vec<DeviceTensor>,
    /// Rows of the pool.
    pub rows: usize,
}

impl KvCache {
    /// An empty pool of `rows` rows: f32 beside f32 weights, else f16.
    ///
    /// # Errors
    /// [`GraphError::OutOfMemory`].
    pub fn new(device: &Device, lm: &CausalLm, rows: usize) -> Result<KvCache, GraphError> {
        let dtype = match lm.exact() {
            true => DType::F32,
            false => DType::F16,
        };
        let width = lm.size.kv_heads * lm.size.head_width;
        let mut buffer = BufferBuilder::new(device, 2 * lm.blocks.len());
        let mut declare = |what: &str| -> Result<Vec<DeviceTensor>, GraphError> {
            (0..lm.blocks.len())
                .map(|i| buffer.declare(&format!("{what}.{i}"), dtype, &[rows, width]))
                .collect()
        };
        let (keys, values) = (declare("keys")?, declare("values")?);
        buffer.allocate()?;
        Ok(KvCache { keys, values, rows })
    }
}

impl CausalBlock {
    fn load(weights: &Weights, size: &CausalLmSize) -> Result<CausalBlock, LoadError> {
        let (attention, mlp) = (weights.pp("self_attn"), weights.pp("mlp"));
        let width = size.width;
        let (q, kv) = (
            size.heads * size.head_width,
            size.kv_heads * size.head_width,
        );
        let bias = [("q_proj.bias", q), ("k_proj.bias", kv), ("v_proj.bias", kv)];
        let names = [
            ("q_proj.weight", q),
            ("k_proj.weight", kv),
            ("v_proj.weight", kv),
        ];
        let bias = match size.qkv_bias {
            true => Some(attention.rows(&[q + 2 * kv], &bias.map(|(n, r)| (Some(n), r)))?),
            false => None,
        };
        let norm = |name| RmsNorm::load(&attention.pp(name), size.head_width, size.eps);
        let gates = ["gate_proj.weight", "up_proj.weight"].map(|name| (Some(name), size.ffn));
        let plain = |weights: &Weights, out, inputs| -> Result<Linear, LoadError> {
            let weight = weights.get(&[out, inputs], "weight")?;
            Ok(Linear { weight, bias: None })
        };
        Ok(CausalBlock {
            attention_norm: RmsNorm::load(&weights.pp("input_layernorm"), width, size.eps)?,
            qkv: Linear {
                weight: attention.rows(&[q + 2 * kv, width], &names.map(|(n, r)| (Some(n), r)))?,
                bias,
            },
            qk_norm: match size.qk_norm {
                true => Some([norm("q_norm")?, norm("k_norm")?]),
                false => None,
            },
            attention_out: plain(&attention.pp("o_proj"), width, q)?,
            ffn_norm: RmsNorm::load(&weights.pp("post_attention_layernorm"), width, size.eps)?,
            gate_up: Linear {
                weight: mlp.rows(&[2 * size.ffn, width], &gates)?,
                bias: None,
            },
            down: plain(&mlp.pp("down_proj"), width, size.ffn)?,
        })
    }

    /// `[n, width]` -> `[n, width]`.
    fn forward<'g>(
        &self,
        x: Tensor<'g>,
        at: &Place<'g>,
        cache: (&DeviceTensor, &DeviceTensor),
        size: &CausalLmSize,
    ) -> Tensor<'g> {
        let x = x + self.attention(self.attention_norm.forward(x), at, cache, size);
        let h = self.gate_up.forward(self.ffn_norm.forward(x)); // [n, 2 ffn]
        x + self.down.forward(h.glu(Glu::Silu))
    }

    fn attention<'g>(
        &self,
        x: Tensor<'g>,
        at: &Place<'g>,
        (keys, values): (&DeviceTensor, &DeviceTensor),
        size: &CausalLmSize,
    ) -> Tensor<'g> {
        let (scope, n) = (x.scope(), x.dim(0));
        let kv = size.kv_heads * size.head_width;
        let [q, k, v] = self.qkv.sections(x, [size.heads * size.head_width, kv, kv]);
        let turn = |x: Tensor<'g>, heads: usize, norm: usize| {
            let x = x.split_last(heads); // [n, head, head width]
            let x = self
                .qk_norm
                .as_ref()
                .map_or(x, |both| both[norm].forward(x));
            x.rotary(at.positions, size.rotary_base)
        };
        let q = turn(q, size.heads, 0).reshape(&[1, n, size.heads, size.head_width]);
        let k = turn(k, size.kv_heads, 1).reshape(&[n, kv]);
        let pool = at.mask.dim(1);
        let see = |cache: &DeviceTensor, new: Tensor<'g>| {
            let all = scope.write_rows(cache, new, at.rows).slice(0, 0, pool);
            all.reshape(&[1, pool, kv]).split_last(size.kv_heads) // [1, pool, kv head, head width]
        };
        let (k, v) = (see(keys, k), see(values, v));
        let scale = (size.head_width as f32).powf(-0.5);
        let mixed = q.attention(k, v, Some(at.mask), scale, at.kernel);
        let mixed = mixed.reshape(&[n, size.heads * size.head_width]);
        self.attention_out.forward(mixed)
    }
}

impl CausalLm {
    /// Reads `embed_tokens` (where `embeddings` says so), `layers.N` and `norm`, as transformers
    /// names them.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        size: CausalLmSize,
        embeddings: bool,
    ) -> Result<CausalLm, LoadError> {
        let layers = weights.pp("layers");
        let blocks = (0..size.layers).map(|i| CausalBlock::load(&layers.pp(i), &size));
        let norm = |_| RmsNorm::load(&weights.pp("norm"), size.width, size.eps);
        let table = |_| weights.table(&[size.vocab, size.width], "embed_tokens.weight");
        Ok(CausalLm {
            embeddings: embeddings.then_some(()).map(table).transpose()?,
            blocks: blocks.collect::<Result<_, _>>()?,
            norm: size.final_norm.then_some(()).map(norm).transpose()?,
            size,
        })
    }

    /// Whether the weights are f32, so that products should keep all of it.
    pub fn exact(&self) -> bool {
        let first = self.blocks.first();
        first.is_some_and(|block| block.down.weight.dtype() == DType::F32)
    }

    /// Token ids i32 `[n]` -> embeddings `[n, width]`; zeros for a model without any.
    pub fn embed<'g>(&self, tokens: Tensor<'g>) -> Tensor<'g> {
        let scope = tokens.scope();
        match &self.embeddings {
            Some(table) => tokens.look_up(scope.stored(table)),
            None => scope.fail(GraphError::Tensor {
                name: "embed_tokens.weight".into(),
                problem: "this part of the model has no embeddings".into(),
            }),
        }
    }

    /// Embeddings `[n, width]` -> hidden states after the last block (and norm) `[n, width]`; keys
    /// and values go into `cache`.
    pub fn forward<'g>(&self, x: Tensor<'g>, at: &Place<'g>, cache: &KvCache) -> Tensor<'g> {
        let caches = cache.keys.iter().zip(&cache.values);
        let x = self
            .blocks
            .iter()
            .zip(caches)
            .fold(x, |x, (block, rows)| block.forward(x, at, rows, &self.size));
        self.norm.as_ref().map_or(x, |norm| norm.forward(x))
    }
}

/// The mask of `lanes` tokens over `pool` rows: `seen[i]` are the rows that token `i` sees; of a
/// token without any (padding), the row 0.
pub fn causal_mask<S: AsRef<[usize]>>(seen: &[S], lanes: usize, pool: usize) -> Vec<f16> {
    let mut mask = vec![f16::NEG_INFINITY; lanes * pool];
    for (i, row) in mask.chunks_exact_mut(pool.max(1)).enumerate() {
        let rows = seen.get(i).map_or(&[][..], AsRef::as_ref);
        // A softmax over nothing is not a number.
        let rows = if rows.is_empty() { &[0][..] } else { rows };
        rows.iter().for_each(|&at| row[at] = f16::ZERO);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::Graph,
        weights::{Computed, Loader, Policy},
    };

    const SIZE: CausalLmSize = CausalLmSize {
        width: 24,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_width: 8,
        ffn: 40,
        vocab: 30,
        eps: 1e-6,
        rotary_base: 1e4,
        qkv_bias: false,
        qk_norm: true,
        final_norm: true,
    };

    fn model(device: &Device, policy: Policy) -> CausalLm {
        let source = Computed::new(|name: &str, shape: &[usize]| {
            let count = shape.iter().product::<usize>();
            let at = name.len() as f32;
            (0..count)
                .map(|i| {
                    ((i as f32 + at) * 0.7).sin() * 0.4 + if shape.len() < 2 { 1.0 } else { 0.0 }
                })
                .collect()
        });
        let loader = Loader::new(&source, device, policy);
        let lm = CausalLm::load(&loader.root(), SIZE, true).unwrap();
        loader.finish().unwrap();
        lm
    }

    /// The last hidden state of `tokens`, read `step` at a time into the rows `rows`.
    fn read(
        device: &Device,
        lm: &CausalLm,
        tokens: &[i32],
        rows: &[usize],
        step: usize,
    ) -> Vec<f32> {
        let cache = KvCache::new(device, lm, 16).unwrap();
        let mut graph = Graph::build_exact(device, |g| {
            let at = Place {
                positions: g.input("positions", DType::I32, &[step]),
                rows: g.input("rows", DType::I32, &[step]),
                mask: g.input("mask", DType::F16, &[step, 16]),
                kernel: Kernel::Flash,
            };
            let x = lm.embed(g.input("tokens", DType::I32, &[step]));
            g.output("y", lm.forward(x, &at, &cache).slice(0, step - 1, 1));
            Ok(())
        })
        .unwrap();
        for start in (0..tokens.len()).step_by(step) {
            let here = start..start + step;
            let ints = |of: &dyn Fn(usize) -> i32| here.clone().map(of).collect::<Vec<_>>();
            let seen: Vec<&[usize]> = here.clone().map(|i| &rows[..=i]).collect();
            graph.write("tokens", &tokens[here.clone()]).unwrap();
            graph.write("positions", &ints(&|i| i as i32)).unwrap();
            graph.write("rows", &ints(&|i| rows[i] as i32)).unwrap();
            graph.write("mask", &causal_mask(&seen, step, 16)).unwrap();
            graph.compute().unwrap();
        }
        graph.read("y").unwrap()
    }

    #[test]
    fn one_by_one_is_as_all_at_once_wherever_the_rows_lie() {
        let device = Device::cpu(2).unwrap();
        let lm = model(&device, Policy::F32);
        let tokens = [3, 17, 4, 9, 29, 0];
        let whole = read(&device, &lm, &tokens, &[1, 2, 3, 4, 5, 6], 6);
        assert!(whole.iter().all(|x| x.is_finite()) && whole[0] != whole[1]);
        for (rows, step) in [([1, 2, 3, 4, 5, 6], 1), ([9, 2, 14, 15, 1, 0], 2)] {
            let found = read(&device, &lm, &tokens, &rows, step);
            for (a, b) in found.iter().zip(&whole) {
                assert!((a - b).abs() < 1e-4, "{a} for {b}");
            }
        }
        let other = read(&device, &lm, &[3, 17, 4, 9, 28, 0], &[1, 2, 3, 4, 5, 6], 6);
        assert!(other.iter().zip(&whole).any(|(a, b)| (a - b).abs() > 1e-3));
    }

    #[test]
    fn a_token_that_sees_nothing_sees_the_first_row() {
        let mask = causal_mask(&[&[1usize, 3][..], &[]], 3, 4);
        let open: Vec<usize> = (0..12).filter(|&i| mask[i] == f16::ZERO).collect();
        assert_eq!(open, [1, 3, 4, 8]);
    }
}
