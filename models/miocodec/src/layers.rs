//! Layers of the decoders.

use audiocpp::{
    graph::{Around, DeviceTensor, Tensor},
    nn::{Conv, ConvSize, Linear, Upsample, UpsampleSize, constant},
    weights::{LoadError, Weights},
};

use crate::net::Tap;

/// As many steps as wanted, by linear interpolation between the middles of steps: `[1, n, c]` ->
/// `[1, m, c]`.
pub fn stretched(x: Tensor<'_>, m: usize) -> Tensor<'_> {
    let [_, n, channels] = x.dims();
    if n == m {
        return x;
    }
    let mut shares = vec![0.0; m * n];
    for (i, row) in shares.chunks_exact_mut(n).enumerate() {
        let at = ((i as f32 + 0.5) * (n as f32 / m as f32) - 0.5).max(0.0);
        let below = (at as usize).min(n - 1);
        let share = at - below as f32;
        row[below] += 1.0 - share;
        row[(below + 1).min(n - 1)] += share;
    }
    let shares = constant(x.scope(), &[m, n], &shares);
    shares
        .matmul(x.reshape(&[n, channels]))
        .reshape(&[1, m, channels])
}

/// x + conv(silu(norm(conv(silu(norm(x)))))).
pub struct ResNet {
    norms: [GroupNorm; 2],
    convs: [Conv; 2],
}

impl ResNet {
    pub fn load(
        weights: &Weights,
        [width, kernel, groups]: [usize; 3],
        short: bool,
    ) -> Result<Self, LoadError> {
        let norm = |name: &str| GroupNorm::load(&weights.pp(name), width, groups);
        let size = ConvSize::new(width, width, kernel);
        let conv = |name: &str| Conv::load(&weights.pp(name), size, short);
        Ok(ResNet {
            norms: [norm("norm1")?, norm("norm2")?],
            convs: [conv("conv1")?, conv("conv2")?],
        })
    }

    /// `[1, time, width]` -> `[1, time, width]`.
    pub fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let y = self.convs[0].forward(self.norms[0].forward(x).silu());
        let plus = Around {
            plus: &[x],
            ..Around::default()
        };
        self.convs[1].around(self.norms[1].forward(y).silu(), plus)
    }
}

/// Groups of channels are normalised over themselves and time.
struct GroupNorm {
    groups: usize,
    gain: DeviceTensor,
    bias: DeviceTensor,
}

impl GroupNorm {
    fn load(weights: &Weights, channels: usize, groups: usize) -> Result<Self, LoadError> {
        Ok(GroupNorm {
            groups,
            gain: weights.get_f32(&[channels], "weight")?,
            bias: weights.get_f32(&[channels], "bias")?,
        })
    }

    /// `[1, time, channel]` -> `[1, time, channel]`.
    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        let y = x.transpose().contiguous().group_norm(self.groups, 1e-6);
        y.transpose().contiguous() * &self.gain + &self.bias
    }
}

/// Makes more, shorter steps: each stage a transposed convolution, a snake, a ResNet block.
pub struct Upsampler {
    stages: Vec<(Upsample, Snake, ResNet)>,
    project: Linear,
    snake: Snake,
}

impl Upsampler {
    pub fn load(
        weights: &Weights,
        size: [usize; 3],
        stages: &[[usize; 2]],
        short: bool,
    ) -> Result<Self, LoadError> {
        let [width, taps, groups] = size;
        let stage = |(i, &[stride, kernel]): (usize, &[usize; 2])| {
            let at = |part: &str| weights.pp(part).pp(i);
            let (inputs, out) = (width >> i, width >> (i + 1));
            let size = UpsampleSize {
                inputs,
                out,
                kernel,
                stride,
            };
            Ok((
                Upsample::load(&at("upsample_layers"), size, short)?,
                Snake::load(&at("snake_activations"), out)?,
                ResNet::load(&at("resnet_blocks"), [out, taps, groups.min(out)], short)?,
            ))
        };
        Ok(Upsampler {
            stages: stages
                .iter()
                .enumerate()
                .map(stage)
                .collect::<Result<_, LoadError>>()?,
            project: Linear::load(&weights.pp("out_proj"), width, width >> stages.len())?,
            snake: Snake::load(&weights.pp("out_snake"), width)?,
        })
    }

    /// `[1, time, width]` -> `[1, time * factors, width]`.
    pub fn forward<'g>(&self, mut x: Tensor<'g>, tap: Tap<'_, 'g>) -> Tensor<'g> {
        for (i, (upsample, snake, block)) in self.stages.iter().enumerate() {
            x = upsample.forward(x, 1.0);
            tap(&format!("upsampler.conv{i}"), x);
            x = snake.forward(x);
            tap(&format!("upsampler.snake{i}"), x);
            x = block.forward(x);
            tap(&format!("upsampler.block{i}"), x);
        }
        let x = self.snake.forward(self.project.forward(x));
        tap("upsampler", x);
        x
    }
}

/// x + sin²(a x) / b, where logarithms of a and b are learned.
struct Snake {
    a: DeviceTensor,
    inverse_b: DeviceTensor,
}

impl Snake {
    fn load(weights: &Weights, channels: usize) -> Result<Self, LoadError> {
        let of = |name: &str, make: fn(f32) -> f32| {
            weights.get_with(&[channels], name, [(name, &[channels])], move |[mut t]| {
                t.data.iter_mut().for_each(|x| *x = make(*x));
                t
            })
        };
        Ok(Snake {
            a: of("alpha", f32::exp)?,
            inverse_b: of("beta", |b| 1.0 / (b.exp() + 1e-9))?,
        })
    }

    /// `[1, time, channel]` -> `[1, time, channel]`.
    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x + (x * &self.a).sin().sqr() * &self.inverse_b
    }
}
