//! Residual coupling flows, run from the latent side to the data side.

use crate::{
    graph::Tensor,
    weights::{LoadError, Weights},
};

use super::{Linear, Turn, WaveNet, WaveNetSize};

/// Layers that move one half of the channels by a function of the other half, with the channels
/// put in reverse order between them (VITS, <https://arxiv.org/abs/2106.06103>).
///
/// Nothing is reversed at run time: every second layer has its weights turned round instead.
#[derive(Debug, Clone)]
pub struct CouplingFlow {
    layers: Vec<Layer>,
}

#[derive(Debug, Clone)]
struct Layer {
    pre: Linear,
    net: WaveNet,
    post: Linear,
}

impl CouplingFlow {
    /// The layers named `names`, in the order in which they are run, of a flow over `channels`
    /// channels. Each reads `pre`, `enc` and `post`. There must be an even number of them, so
    /// that the channels come out in their order.
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(
        weights: &Weights,
        names: &[String],
        channels: usize,
        net: WaveNetSize,
        short: bool,
    ) -> Result<CouplingFlow, LoadError> {
        let half = channels / 2;
        let layer = |(i, name): (usize, &String)| {
            let (weights, c) = (weights.pp(name), net.channels);
            let [inputs, outputs] = match i % 2 {
                0 => [Turn::Inputs, Turn::Outputs],
                _ => [Turn::Keep, Turn::Keep],
            };
            Ok(Layer {
                pre: Linear::load_part(&weights.pp("pre"), [c, half], 0..c, inputs)?,
                net: WaveNet::load(&weights.pp("enc"), net, short)?,
                post: Linear::load_part(&weights.pp("post"), [half, c], 0..half, outputs)?,
            })
        };
        let layers = names.iter().enumerate().map(layer);
        Ok(CouplingFlow {
            layers: layers.collect::<Result<_, LoadError>>()?,
        })
    }

    /// Latents to data: x `[1, time, channels]`, condition `[1, 1, k]` -> the same shape.
    pub fn inverse<'g>(&self, x: Tensor<'g>, condition: Option<Tensor<'g>>) -> Tensor<'g> {
        let [mut moved, mut kept] = x.split::<2>(-1).map(Tensor::contiguous);
        for layer in &self.layers {
            let hidden = layer.net.forward(layer.pre.forward(kept), condition);
            moved = moved - layer.post.forward(hidden);
            std::mem::swap(&mut moved, &mut kept);
        }
        moved.concat(kept, 2)
    }
}
