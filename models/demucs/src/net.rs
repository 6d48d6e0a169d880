//! The network: two branches of encoders and decoders that meet in the middle.

use audiocpp::{
    graph::{DeviceTensor, Tensor},
    weights::{HostTensor, LoadError, Weights},
};

use crate::{
    config::NetConfig,
    layers::{Axis, Decoder, Encoder, LayerSize},
    transformer::CrossTransformer,
};

pub struct Net {
    pub config: NetConfig,
    /// Of the bins, and of the samples.
    pub encoder: Vec<Encoder>,
    pub tencoder: Vec<Encoder>,
    /// Added to each frequency after the first layer, `[1, row, 1, channel]`.
    pub freq_emb: Option<DeviceTensor>,
    pub transformer: Option<CrossTransformer>,
    /// From the middle outwards.
    pub decoder: Vec<Decoder>,
    pub tdecoder: Vec<Decoder>,
}

/// The sizes of one step of the encoder with the same of the decoder.
struct Step {
    encoder: LayerSize,
    decoder: LayerSize,
    /// While there are two branches.
    time: Option<[LayerSize; 2]>,
}

/// The sizes of all steps, and the frequencies after the first.
fn steps(config: &NetConfig, short: bool) -> (Vec<Step>, usize) {
    let c = config;
    let (mut chin, mut chin_z) = (c.audio_channels, 2 * c.audio_channels);
    let (mut chout, mut chout_z) = (c.channels_time, c.channels);
    let mut freqs = c.nfft / 2;
    let mut first = 0;
    let mut steps = Vec::new();
    for index in 0..c.depth {
        let freq = freqs > 1;
        let last_freq = freq && freqs <= c.kernel_size;
        let (kernel, stride) = match (freq, last_freq) {
            (false, _) => (2 * c.time_stride, c.time_stride),
            (true, true) => (freqs, c.stride),
            (true, false) => (c.kernel_size, c.stride),
        };
        if last_freq {
            chout_z = chout.max(chout_z);
            chout = chout_z;
        }
        let size = LayerSize {
            outer: chin_z,
            inner: chout_z,
            axis: if freq { Axis::Frequency } else { Axis::Time },
            kernel,
            stride,
            padding: if last_freq { 0 } else { kernel / 4 },
            norm: (index >= c.norm_starts).then_some(c.norm_groups),
            context: c.context_enc,
            dconv: c.dconv[0],
            empty: false,
            short,
        };
        let time = LayerSize {
            outer: chin,
            inner: chout,
            axis: Axis::Time,
            kernel: c.kernel_size,
            stride: c.stride,
            padding: c.kernel_size / 4,
            empty: last_freq,
            ..size
        };
        if index == 0 {
            chin = c.audio_channels * c.sources.len();
            chin_z = 2 * chin;
        }
        let out = |size: LayerSize, outer: usize| LayerSize {
            outer,
            context: c.context,
            dconv: c.dconv[1],
            ..size
        };
        steps.push(Step {
            encoder: size,
            decoder: out(size, chin_z),
            time: freq.then(|| [time, out(time, chin)]),
        });
        (chin, chin_z) = (chout, chout_z);
        chout = (c.growth * chout as f64) as usize;
        chout_z = (c.growth * chout_z as f64) as usize;
        if freq {
            freqs = if freqs <= c.kernel_size {
                1
            } else {
                freqs / c.stride
            };
        }
        if index == 0 {
            first = freqs;
        }
    }
    (steps, first)
}

impl Net {
    /// Reads the tensors of a network, with `short` those of convolutions in the form of
    /// [`FastPath::ShortConv`](audiocpp::backend::FastPath::ShortConv).
    ///
    /// # Errors
    /// As [`Weights::get`].
    pub fn load(root: &Weights, config: NetConfig, short: bool) -> Result<Net, LoadError> {
        let (steps, freqs) = steps(&config, short);
        let mut net = Net {
            encoder: Vec::new(),
            tencoder: Vec::new(),
            freq_emb: None,
            transformer: None,
            decoder: Vec::new(),
            tdecoder: Vec::new(),
            config,
        };
        let c = &net.config;
        let branches = steps.iter().filter(|step| step.time.is_some()).count();
        for (i, step) in steps.iter().enumerate() {
            let at = |name: &str, index: usize| root.pp(name).pp(index);
            net.encoder
                .push(Encoder::load(&at("encoder", i), step.encoder, c, i)?);
            let deepest = &at("decoder", steps.len() - 1 - i);
            net.decoder
                .insert(0, Decoder::load(deepest, step.decoder, c, i)?);
            if let Some([encoder, decoder]) = step.time {
                net.tencoder
                    .push(Encoder::load(&at("tencoder", i), encoder, c, i)?);
                let deepest = &at("tdecoder", branches - 1 - i);
                net.tdecoder
                    .insert(0, Decoder::load(deepest, decoder, c, i)?);
            }
        }
        if c.freq_emb > 0.0 {
            let (channels, factor) = (c.channels, c.freq_emb * c.emb_scale);
            let shape = [1, freqs, 1, channels];
            let parts = [("freq_emb.embedding.weight", &[freqs, channels][..])];
            net.freq_emb = Some(root.get_with(&shape, "freq_emb", parts, move |[table]| {
                let values = table.data.iter().map(|x| x * factor);
                HostTensor::new(&shape, values.collect())
            })?);
        }
        if let Some(transformer) = &c.transformer {
            let channels = steps.last().map_or(0, |step| step.encoder.inner);
            net.transformer = Some(CrossTransformer::load(root, channels, transformer)?);
        }
        Ok(net)
    }

    /// Bins `[1, frequency, frame, channel * 2]` and samples `[1, 1, sample, channel]`, both
    /// normalised -> those of the stems, `[.., stem * channel * 2]` and `[.., stem * channel]`.
    /// `positions` are those of the transformer, if there is one.
    pub fn forward<'g>(
        &self,
        [x, xt]: [Tensor<'g>; 2],
        positions: impl FnOnce([Tensor<'g>; 2]) -> [Tensor<'g>; 2],
    ) -> [Tensor<'g>; 2] {
        let (mut x, mut xt) = (x, xt);
        let (mut saved, mut saved_t) = (Vec::new(), Vec::new());
        let (mut lengths, mut lengths_t) = (Vec::new(), Vec::new());
        for (i, layer) in self.encoder.iter().enumerate() {
            lengths.push(x.dim(2));
            let mut inject = None;
            if let Some(time) = self.tencoder.get(i) {
                lengths_t.push(xt.dim(2));
                xt = time.forward(xt, None);
                match time.is_empty() {
                    true => inject = Some(xt),
                    false => saved_t.push(xt),
                }
            }
            x = layer.forward(x, inject);
            if let (0, Some(table)) = (i, &self.freq_emb) {
                x = x + table;
            }
            saved.push(x);
        }
        let mut both = [x, xt];
        if let Some(transformer) = &self.transformer {
            both = transformer.forward(both, positions(both));
        }
        // Without a transformer all that reaches the decoder is what skips the middle.
        let middle = self.transformer.is_some();
        let first = self.decoder.len() - self.tdecoder.len();
        let mut skips_t = saved_t.into_iter().rev();
        let (mut lengths, mut lengths_t) = (lengths.iter().rev(), lengths_t.iter().rev());
        for (i, (layer, skip)) in self.decoder.iter().zip(saved.into_iter().rev()).enumerate() {
            let input = if i > 0 || middle {
                both[0] + skip
            } else {
                skip
            };
            let length = lengths.next().copied().unwrap_or(1);
            let (z, before) = layer.forward(input, length);
            both[0] = z;
            let Some(time) = i.checked_sub(first).and_then(|i| self.tdecoder.get(i)) else {
                continue;
            };
            let length = lengths_t.next().copied().unwrap_or(1);
            let input = match time.is_empty() {
                true => before,
                false => match skips_t.next() {
                    Some(skip) if i > first || middle => both[1] + skip,
                    skip => skip.unwrap_or(both[1]),
                },
            };
            both[1] = time.forward(input, length).0;
        }
        both
    }
}
