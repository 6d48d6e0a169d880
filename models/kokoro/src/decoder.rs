//! From text, pitch and energy to spectra.

use audiocpp::{
    graph::{Around, Conv1d, Curve, DeviceTensor, Tensor},
    nn::{AdaIn, Conv, ConvSize, Upsample, UpsampleSize},
    weights::{LoadError, Weights},
};

use crate::{
    net::{Block, one_tap},
    size::{GeneratorSize, NetSize},
};

/// Slope of the leaky rectifiers before upsamplings.
const SLOPE: f32 = 0.1;
/// Slope of the last one, PyTorch's default.
const LAST_SLOPE: f32 = 0.01;

/// Frames to what the generator reads.
pub struct Decoder {
    pub pitch: Conv,
    pub energy: Conv,
    pub residual: Conv,
    pub encode: Block,
    pub decode: Vec<Block>,
    pub generator: Generator,
}

/// A residual block of the vocoder: convolutions between snakes.
pub struct SnakeBlock(Vec<SnakeLayer>);

/// Two convolutions, each after a norm and a snake.
pub struct SnakeLayer {
    pub norm1: AdaIn,
    pub alpha1: DeviceTensor,
    pub conv1: Conv,
    pub norm2: AdaIn,
    pub alpha2: DeviceTensor,
    pub conv2: Conv,
}

/// An upsampling, what the source adds behind it, and residual blocks.
pub struct Stage {
    pub up: Upsample,
    pub source: DeviceTensor,
    pub source_bias: DeviceTensor,
    pub source_shape: Conv1d,
    pub source_block: SnakeBlock,
    pub blocks: Vec<SnakeBlock>,
}

/// The vocoder, apart from the transform at its end.
pub struct Generator {
    pub stages: Vec<Stage>,
    pub last: Conv,
}

impl Decoder {
    /// Reads the decoder of a network of `size`.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(weights: &Weights, size: &NetSize, short: bool) -> Result<Decoder, LoadError> {
        let single = |name: &str| Conv::load(&weights.pp(name), ConvSize::new(1, 1, 3), short);
        let style = size.style;
        let first = size.decoder[0];
        let mut width = first;
        let mut decode = Vec::new();
        for (i, &out) in size.decoder.iter().enumerate() {
            let shape = [width + size.residual + 2, out];
            decode.push(Block::load(
                &weights.pp("decode").pp(i),
                shape,
                style,
                short,
            )?);
            width = out;
        }
        Ok(Decoder {
            pitch: single("F0_conv")?,
            energy: single("N_conv")?,
            residual: one_tap(
                &weights.pp("asr_res.0"),
                [size.hidden, size.residual],
                short,
            )?,
            encode: Block::load(
                &weights.pp("encode"),
                [size.hidden + 2, first],
                style,
                short,
            )?,
            decode,
            generator: Generator::load(&weights.pp("generator"), &size.generator, style, short)?,
        })
    }

    /// Text `[1, frames, hidden]`, pitch and energy `[1, 2 frames, 1]`, style `[1, style]` ->
    /// `[1, 2 frames, channels]`.
    pub fn forward<'g>(
        &self,
        text: Tensor<'g>,
        [pitch, energy]: [Tensor<'g>; 2],
        style: Tensor<'g>,
    ) -> Tensor<'g> {
        let frames = text.dim(1);
        // Of a convolution with stride 2, every second step of one without.
        let halved = |conv: &Conv, x| {
            let pairs = conv.forward(x).reshape(&[1, frames, 2]);
            pairs.slice(2, 0, 1).contiguous() // [1, frames, 1]
        };
        let curves = halved(&self.pitch, pitch).concat(halved(&self.energy, energy), 2);
        let mut x = self.encode.forward(text.concat(curves, 2), style);
        let beside = self.residual.forward(text).concat(curves, 2);
        for block in &self.decode {
            x = block.forward(x.concat(beside, 2), style);
        }
        x
    }
}

impl SnakeBlock {
    fn load(
        weights: &Weights,
        channels: usize,
        (taps, dilations): (usize, &[usize]),
        style: usize,
        short: bool,
    ) -> Result<SnakeBlock, LoadError> {
        let layer = |(i, &dilation): (usize, &usize)| {
            let part = |name: &str| weights.pp(name).pp(i);
            let norm = |name: &str| AdaIn::load(&part(name), style, channels, short);
            let size = ConvSize::new(channels, channels, taps);
            let alpha = |name: &str| {
                let (shape, stored) = ([channels], [1, channels, 1]);
                let i = i.to_string();
                weights
                    .pp(name)
                    .get_with(&shape, &i, [(&i, &stored)], move |[a]| a.reshape(&shape))
            };
            Ok(SnakeLayer {
                norm1: norm("adain1")?,
                alpha1: alpha("alpha1")?,
                conv1: Conv::load(&part("convs1"), size.dilated(dilation), short)?,
                norm2: norm("adain2")?,
                alpha2: alpha("alpha2")?,
                conv2: Conv::load(&part("convs2"), size, short)?,
            })
        };
        let layers = dilations.iter().enumerate().map(layer);
        Ok(SnakeBlock(layers.collect::<Result<_, LoadError>>()?))
    }

    /// `scale (block(x) + sum)`: x and sum `[1, time, channels]`, style `[1, style]`.
    fn forward<'g>(
        &self,
        mut x: Tensor<'g>,
        style: Tensor<'g>,
        sum: Option<Tensor<'g>>,
        scale: f32,
    ) -> Tensor<'g> {
        let scope = x.scope();
        let snake = |alpha| Curve::Snake(scope.stored(alpha));
        for (i, layer) in self.0.iter().enumerate() {
            let last = i + 1 == self.0.len();
            let y = layer.norm1.forward(x, style, snake(&layer.alpha1));
            let y = layer.conv1.forward(y);
            let y = layer.norm2.forward(y, style, snake(&layer.alpha2));
            let mut plus = vec![x];
            plus.extend(sum.filter(|_| last));
            let around = Around {
                plus: &plus,
                scale: if last { scale } else { 1.0 },
                ..Around::default()
            };
            x = layer.conv2.around(y, around);
        }
        x
    }
}

impl Stage {
    fn load(
        weights: &Weights,
        size: &GeneratorSize,
        i: usize,
        style: usize,
        short: bool,
    ) -> Result<Stage, LoadError> {
        let (factor, kernel) = size.upsamples[i];
        let (inputs, out) = (size.channels >> i, size.channels >> (i + 1));
        let up = UpsampleSize {
            inputs,
            out,
            kernel,
            stride: factor,
        };
        let block = |(j, (taps, dilations)): (usize, &(usize, Vec<usize>))| {
            let weights = weights.pp("resblocks").pp(i * size.blocks.len() + j);
            SnakeBlock::load(&weights, out, (*taps, dilations), style, short)
        };
        let blocks = size.blocks.iter().enumerate().map(block);
        // The source has the steps of the last stage.
        let later: usize = size.upsamples[i + 1..]
            .iter()
            .map(|(factor, _)| factor)
            .product();
        let last = i + 1 == size.upsamples.len();
        let padding = if last { 0 } else { later.div_ceil(2) };
        let shape = Conv1d {
            kernel: if last { 1 } else { 2 * later },
            stride: later,
            dilation: 1,
            padding: (padding, padding),
        };
        let source = weights.pp("noise_convs").pp(i);
        let source_block = weights.pp("noise_res").pp(i);
        let source_layers = (size.source_taps[i], &[1, 3, 5][..]);
        Ok(Stage {
            up: Upsample::load(&weights.pp("ups").pp(i), up, short)?,
            source: source.conv1d(out, size.transform.0 + 2, shape.kernel, "weight")?,
            source_bias: source.get_f32(&[out], "bias")?,
            source_shape: shape,
            source_block: SnakeBlock::load(&source_block, out, source_layers, style, short)?,
            blocks: blocks.collect::<Result<_, LoadError>>()?,
        })
    }
}

impl Generator {
    fn load(
        weights: &Weights,
        size: &GeneratorSize,
        style: usize,
        short: bool,
    ) -> Result<Generator, LoadError> {
        let stages = size.upsamples.len();
        let stage = |i| Stage::load(weights, size, i, style, short);
        let last = ConvSize::new(size.channels >> stages, size.transform.0 + 2, 7);
        Ok(Generator {
            stages: (0..stages).map(stage).collect::<Result<_, LoadError>>()?,
            last: Conv::load(&weights.pp("conv_post"), last, short)?,
        })
    }

    /// x `[1, time, channels]`, the spectrum of the source `[1, factor time + 1, bins]`, style
    /// `[1, style]` -> `[1, factor time + 1, bins]`: logarithms of magnitudes, then what the sines
    /// of are phases.
    pub fn forward<'g>(
        &self,
        mut x: Tensor<'g>,
        source: Tensor<'g>,
        style: Tensor<'g>,
    ) -> Tensor<'g> {
        for (i, stage) in self.stages.iter().enumerate() {
            let told = source.conv1d(&stage.source, Some(&stage.source_bias), stage.source_shape);
            let told = stage.source_block.forward(told, style, None, 1.0);
            x = stage.up.forward(x, SLOPE).contiguous();
            if i + 1 == self.stages.len() {
                // One step more at the start, mirrored.
                x = x.slice(1, 1, 1).contiguous().concat(x, 1);
            }
            let input = x + told;
            let mut sum = None;
            for (j, block) in stage.blocks.iter().enumerate() {
                let scale = match j + 1 == stage.blocks.len() {
                    true => 1.0 / stage.blocks.len() as f32,
                    false => 1.0,
                };
                sum = Some(block.forward(input, style, sum, scale));
            }
            x = sum.unwrap_or(input);
        }
        let around = Around {
            slope: LAST_SLOPE,
            ..Around::default()
        };
        self.last.around(x, around)
    }
}
