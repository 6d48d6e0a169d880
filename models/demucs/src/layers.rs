//! The layers of encoder and decoder. Everything is a plane `[1, row, step, channel]`: rows are
//! frequencies and steps frames, or there is one row and steps are samples.

use audiocpp::{
    graph::{Conv2d, DeviceTensor, Glu, RowCurve, Tensor, Widened},
    nn::{PlaneConv, PlaneUpsample, PlaneUpsampleSize},
    weights::{LoadError, Weights},
};

use crate::{
    config::NetConfig,
    memory::{Blstm, LocalState},
};

/// Along which axis of the plane a layer's steps are longer than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    Frequency,
    Time,
}

impl Axis {
    /// `value` along the axis, `other` along the other one.
    pub fn pair<T>(self, value: T, other: T) -> [T; 2] {
        match self {
            Axis::Frequency => [value, other],
            Axis::Time => [other, value],
        }
    }
}

/// What a layer of encoder or decoder is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerSize {
    /// Channels outside and inside.
    pub outer: usize,
    pub inner: usize,
    pub axis: Axis,
    pub kernel: usize,
    pub stride: usize,
    /// Zeros on both sides of the input, or what is cut off the output.
    pub padding: usize,
    /// Groups of the normalisation, if there is one.
    pub norm: Option<usize>,
    /// Neighbours that the rewriting convolution sees.
    pub context: usize,
    /// Whether there is a residual branch.
    pub dconv: bool,
    /// Whether there is nothing but the strided convolution.
    pub empty: bool,
    /// Whether convolutions take the form of short ones.
    pub short: bool,
}

impl LayerSize {
    fn strided(&self) -> Conv2d {
        Conv2d {
            kernel: self.axis.pair(self.kernel, 1),
            stride: self.axis.pair(self.stride, 1),
            dilation: [1, 1],
            padding: self.axis.pair((self.padding, self.padding), (0, 0)),
        }
    }

    /// Reads the convolution that makes halves of a gate.
    fn rewriting(&self, weights: &Weights) -> Result<PlaneConv, LoadError> {
        let n = self.context;
        let (taps, zeros) = match self.axis {
            Axis::Frequency => ([2 * n + 1; 2], [(n, n); 2]),
            Axis::Time => ([1, 2 * n + 1], [(0, 0), (n, n)]),
        };
        let shape = Conv2d {
            kernel: taps,
            stride: [1, 1],
            dilation: [1, 1],
            padding: zeros,
        };
        let size = [2 * self.inner, self.inner];
        PlaneConv::load_short(weights, size, shape, self.short)
    }
}

/// Normalisation over groups of channels and the whole plane, or over all of each row.
pub struct GroupNorm {
    groups: usize,
    gain: DeviceTensor,
    bias: DeviceTensor,
}

impl GroupNorm {
    const EPS: f32 = 1e-5;

    /// Of `groups` groups of channels.
    pub fn load(weights: &Weights, channels: usize, groups: usize) -> Result<Self, LoadError> {
        Ok(GroupNorm {
            groups,
            gain: weights.get_f32(&[channels], "weight")?,
            bias: weights.get_f32(&[channels], "bias")?,
        })
    }

    /// Each group with all rows and steps: `[1, row, step, channel]` -> the same.
    pub fn plane<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [_, rows, steps, channels] = x.dims();
        if self.groups == 1 {
            let line = x.reshape(&[1, 1, rows * steps, channels]);
            let y = self.row(line, RowCurve::Line);
            return y.reshape(&[1, rows, steps, channels]);
        }
        let (n, each) = (self.groups, channels / self.groups.max(1));
        let apart = x
            .reshape(&[rows * steps, n, each])
            .permute(&[1, 0, 2])
            .reshape(&[n, rows * steps * each]);
        let y = apart.norm(Self::EPS).reshape(&[n, rows * steps, each]);
        let y = y.permute(&[1, 0, 2]).reshape(&[1, rows, steps, channels]);
        y * &self.gain + &self.bias
    }

    /// All channels and steps of each row, and what follows: `[1, row, step, channel]`.
    pub fn row<'g>(&self, x: Tensor<'g>, curve: RowCurve<'_, 'g>) -> Tensor<'g> {
        x.row_norm(&self.gain, &self.bias, Self::EPS, curve)
    }
}

/// A layer of the encoder: a strided convolution, a residual branch, a gated rewriting.
pub struct Encoder {
    size: LayerSize,
    conv: PlaneConv,
    inside: Option<Inside>,
}

struct Inside {
    /// After the strided convolution in the encoder, after the rewriting in the decoder; and the
    /// other way round.
    norms: Option<[GroupNorm; 2]>,
    rewrite: PlaneConv,
    dconv: Option<DConv>,
}

fn norm(
    w: &Weights,
    name: &str,
    channels: usize,
    size: LayerSize,
) -> Result<Option<GroupNorm>, LoadError> {
    let load = |groups| GroupNorm::load(&w.pp(name), channels, groups);
    size.norm.map(load).transpose()
}

impl Encoder {
    pub fn load(
        w: &Weights,
        size: LayerSize,
        config: &NetConfig,
        index: usize,
    ) -> Result<Self, LoadError> {
        let conv = PlaneConv::load(&w.pp("conv"), [size.inner, size.outer], size.strided())?;
        let inside = || {
            let n = size.inner;
            let norms = norm(w, "norm1", n, size)?.zip(norm(w, "norm2", 2 * n, size)?);
            Ok::<_, LoadError>(Inside {
                norms: norms.map(|(a, b)| [a, b]),
                rewrite: size.rewriting(&w.pp("rewrite"))?,
                dconv: DConv::load_if(size.dconv, &w.pp("dconv"), n, config, index)?,
            })
        };
        Ok(Encoder {
            size,
            conv,
            inside: (!size.empty).then(inside).transpose()?,
        })
    }

    /// Whether there is nothing but the strided convolution.
    pub fn is_empty(&self) -> bool {
        self.size.empty
    }

    /// `[1, row, step, outer]` -> `[1, row', step', inner]`. What the other branch injects is added
    /// after the strided convolution.
    pub fn forward<'g>(&self, x: Tensor<'g>, inject: Option<Tensor<'g>>) -> Tensor<'g> {
        let x = match self.size.axis {
            // Time is filled up to whole strides.
            Axis::Time => {
                let steps = x.dim(2);
                x.pad(2, 0, steps.next_multiple_of(self.size.stride) - steps)
            }
            Axis::Frequency => x,
        };
        let y = self.conv.forward(x);
        let Some(inside) = &self.inside else { return y };
        let y = inject.map_or(y, |more| y + more);
        let y = inside.norms.as_ref().map_or(y, |[first, _]| first.plane(y));
        let y = y.gelu();
        let y = inside.dconv.as_ref().map_or(y, |dconv| dconv.forward(y));
        let z = inside.rewrite.forward(y); // [1, row', step', 2 inner]
        let z = inside
            .norms
            .as_ref()
            .map_or(z, |[_, second]| second.plane(z));
        z.glu(Glu::Sigmoid)
    }
}

/// A layer of the decoder: a gated rewriting, a residual branch, a transposed convolution.
pub struct Decoder {
    size: LayerSize,
    conv: PlaneUpsample,
    inside: Option<Inside>,
    /// After the transposed convolution, of a layer without anything else.
    norm: Option<GroupNorm>,
    last: bool,
}

impl Decoder {
    pub fn load(
        w: &Weights,
        size: LayerSize,
        config: &NetConfig,
        index: usize,
    ) -> Result<Self, LoadError> {
        let upsample = PlaneUpsampleSize {
            inputs: size.inner,
            out: size.outer,
            kernel: size.axis.pair(size.kernel, 1),
            stride: size.axis.pair(size.stride, 1),
        };
        let n = size.inner;
        let inside = || {
            let norms = norm(w, "norm2", size.outer, size)?.zip(norm(w, "norm1", 2 * n, size)?);
            Ok::<_, LoadError>(Inside {
                norms: norms.map(|(a, b)| [a, b]),
                rewrite: size.rewriting(&w.pp("rewrite"))?,
                dconv: DConv::load_if(size.dconv, &w.pp("dconv"), n, config, index)?,
            })
        };
        Ok(Decoder {
            size,
            conv: PlaneUpsample::load(&w.pp("conv_tr"), upsample)?,
            inside: (!size.empty).then(inside).transpose()?,
            norm: match size.empty {
                true => norm(w, "norm2", size.outer, size)?,
                false => None,
            },
            last: index == 0,
        })
    }

    /// Whether there is nothing but the transposed convolution.
    pub fn is_empty(&self) -> bool {
        self.size.empty
    }

    /// `[1, row, step, inner]` -> `[1, row', length, outer]`, and what went into the transposed
    /// convolution. `length` counts along time only.
    pub fn forward<'g>(&self, x: Tensor<'g>, length: usize) -> (Tensor<'g>, Tensor<'g>) {
        let y = match &self.inside {
            None => x,
            Some(inside) => {
                let y = inside.rewrite.forward(x); // [1, row, step, 2 inner]
                let y = inside.norms.as_ref().map_or(y, |[_, first]| first.plane(y));
                let y = y.glu(Glu::Sigmoid);
                inside.dconv.as_ref().map_or(y, |dconv| dconv.forward(y))
            }
        };
        let z = self.conv.forward(y);
        let of_inside = self.inside.as_ref().and_then(|i| i.norms.as_ref());
        let norm = of_inside.map(|[last, _]| last).or(self.norm.as_ref());
        let z = norm.map_or(z, |norm| norm.plane(z));
        let z = match self.size.axis {
            Axis::Frequency => {
                // A graph that is still looking for room gives stand-ins of one row.
                let rows = z.dim(1).saturating_sub(2 * self.size.padding);
                z.slice(1, self.size.padding, rows)
            }
            Axis::Time => z.slice(2, self.size.padding, length),
        };
        (if self.last { z } else { z.gelu() }, y)
    }
}

/// The residual branch: narrow dilated convolutions along time.
pub struct DConv {
    layers: Vec<DConvLayer>,
}

struct DConvLayer {
    conv: PlaneConv,
    norm: GroupNorm,
    lstm: Option<Blstm>,
    attention: Option<LocalState>,
    /// Weight and bias.
    widen: [DeviceTensor; 2],
    norm_wide: GroupNorm,
    scale: DeviceTensor,
}

impl DConv {
    fn load_if(
        wanted: bool,
        w: &Weights,
        channels: usize,
        config: &NetConfig,
        index: usize,
    ) -> Result<Option<DConv>, LoadError> {
        let load = || {
            let layers = (0..config.dconv_depth)
                .map(|d| DConvLayer::load(&w.pp("layers").pp(d), channels, config, d, index));
            Ok::<_, LoadError>(DConv {
                layers: layers.collect::<Result<_, _>>()?,
            })
        };
        wanted.then(load).transpose()
    }

    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        self.layers.iter().fold(x, |x, layer| layer.forward(x))
    }
}

impl DConvLayer {
    fn load(
        w: &Weights,
        channels: usize,
        config: &NetConfig,
        depth: usize,
        index: usize,
    ) -> Result<Self, LoadError> {
        let hidden = (channels as f64 / config.dconv_comp) as usize;
        let dilation = 1 << depth;
        let along = |kernel: usize, dilation: usize| Conv2d {
            kernel: [1, kernel],
            stride: [1, 1],
            dilation: [1, dilation],
            padding: [(0, 0), (dilation * (kernel / 2), dilation * (kernel / 2))],
        };
        let wide = 2 * channels;
        let parts = [("weight", &[wide, hidden, 1][..])];
        // What stands between the convolutions moves the second one's place in the list.
        let mut place = 3;
        let mut next = |wanted: bool| {
            place += usize::from(wanted);
            wanted.then(|| w.pp(place - 1))
        };
        let lstm = next(index >= config.dconv_lstm);
        let attention = next(index >= config.dconv_attn);
        Ok(DConvLayer {
            conv: PlaneConv::load(&w.pp(0), [hidden, channels], along(3, dilation))?,
            norm: GroupNorm::load(&w.pp(1), hidden, 1)?,
            lstm: lstm.map(|w| Blstm::load(&w, hidden)).transpose()?,
            attention: attention
                .map(|w| LocalState::load(&w, hidden))
                .transpose()?,
            widen: [
                w.pp(place)
                    .get_with(&[wide, hidden], "weight", parts, move |[w]| {
                        w.reshape(&[wide, hidden])
                    })?,
                w.pp(place).get_f32(&[wide], "bias")?,
            ],
            norm_wide: GroupNorm::load(&w.pp(place + 1), wide, 1)?,
            scale: w.pp(place + 3).get_f32(&[channels], "scale")?,
        })
    }

    /// x `[1, row, step, channel]` and what the branch makes of it -> the same.
    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let h = self.norm.row(self.conv.forward(x), RowCurve::Gelu); // [1, row, step, hidden]
        let h = self
            .lstm
            .as_ref()
            .map_or(h, |lstm| each_row(h, |x| lstm.forward(x)));
        let h = self
            .attention
            .as_ref()
            .map_or(h, |a| each_row(h, |x| a.forward(x)));
        let norm = &self.norm_wide;
        h.widened_glu(Widened {
            map: self.widen.each_ref(),
            norm: [&norm.gain, &norm.bias],
            eps: GroupNorm::EPS,
            scale: &self.scale,
            plus: x,
        })
    }
}

/// `f` of each row's steps, `[1, step, channel]`.
fn each_row<'g>(x: Tensor<'g>, f: impl Fn(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
    let [_, rows, steps, channels] = x.dims();
    let row = |i: usize| {
        let own = x.slice(1, i, 1).contiguous().reshape(&[1, steps, channels]);
        f(own).reshape(&[1, 1, steps, channels])
    };
    (1..rows).fold(row(0), |all, i| all.concat(row(i), 1))
}
