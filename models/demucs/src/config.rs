//! The numbers of a network, as its checkpoint gives them: the arguments that built it.

use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// Which of the two architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Hybrid Demucs (v3).
    Hybrid,
    /// Hybrid Transformer Demucs (v4).
    Transformer,
}

impl Kind {
    /// The classes of the checkpoints.
    pub const CLASSES: [(&str, Kind); 2] = [
        ("demucs.hdemucs.HDemucs", Kind::Hybrid),
        ("demucs.htdemucs.HTDemucs", Kind::Transformer),
    ];

    /// The architecture of a class.
    pub fn of_class(class: &str) -> Option<Kind> {
        let found = Kind::CLASSES.iter().find(|(name, _)| *name == class);
        found.map(|(_, kind)| *kind)
    }
}

/// A length of time as checkpoints write it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Fraction { numerator: f64, denominator: f64 },
}

/// What the constructor of the network was called with; what is absent has the class's default.
#[derive(Debug, Clone, Deserialize)]
struct Arguments {
    sources: Vec<String>,
    audio_channels: Option<usize>,
    channels: Option<usize>,
    channels_time: Option<usize>,
    growth: Option<f64>,
    nfft: Option<usize>,
    cac: Option<bool>,
    depth: Option<usize>,
    rewrite: Option<bool>,
    hybrid: Option<bool>,
    hybrid_old: Option<bool>,
    multi_freqs: Option<Vec<f64>>,
    freq_emb: Option<f64>,
    emb_scale: Option<f64>,
    kernel_size: Option<usize>,
    time_stride: Option<usize>,
    stride: Option<usize>,
    context: Option<usize>,
    context_enc: Option<usize>,
    norm_starts: Option<usize>,
    norm_groups: Option<usize>,
    dconv_mode: Option<usize>,
    dconv_depth: Option<usize>,
    dconv_comp: Option<f64>,
    dconv_attn: Option<usize>,
    dconv_lstm: Option<usize>,
    bottom_channels: Option<usize>,
    t_layers: Option<usize>,
    t_emb: Option<String>,
    t_hidden_scale: Option<f64>,
    t_heads: Option<usize>,
    t_norm_in: Option<bool>,
    t_norm_in_group: Option<Flag>,
    t_group_norm: Option<Flag>,
    t_norm_first: Option<bool>,
    t_norm_out: Option<Flag>,
    t_max_period: Option<f64>,
    t_layer_scale: Option<bool>,
    t_gelu: Option<bool>,
    t_weight_pos_embed: Option<f64>,
    t_sin_random_shift: Option<usize>,
    t_sparse_self_attn: Option<Flag>,
    t_sparse_cross_attn: Option<Flag>,
    t_cross_first: Option<bool>,
    samplerate: Option<u32>,
    segment: Option<Seconds>,
    use_train_segment: Option<bool>,
}

/// A truth value, or a number that stands for one.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Number(f64),
}

impl Flag {
    fn on(self) -> bool {
        match self {
            Flag::Bool(on) => on,
            Flag::Number(n) => n != 0.0,
        }
    }
}

/// Sizes of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct NetConfig {
    /// Which architecture.
    pub kind: Kind,
    /// Names of the stems.
    pub sources: Vec<String>,
    /// Channels of the sound.
    pub audio_channels: usize,
    /// Channels after the first layer, of the bins and of the samples.
    pub channels: usize,
    /// See `channels`.
    pub channels_time: usize,
    /// Factor of the channels from layer to layer.
    pub growth: f64,
    /// Length of the Fourier transform; frames start every quarter of it.
    pub nfft: usize,
    /// Layers of the encoder.
    pub depth: usize,
    /// Weight of the embedding of frequencies; 0 if there is none.
    pub freq_emb: f32,
    /// Factor of its table.
    pub emb_scale: f32,
    /// Taps of the layers, and steps between outputs.
    pub kernel_size: usize,
    /// See `kernel_size`.
    pub stride: usize,
    /// The same for the layers after the branches are one; these have twice as many taps.
    pub time_stride: usize,
    /// Neighbours that the second convolution of a layer sees, in the decoder and the encoder.
    pub context: usize,
    /// See `context`.
    pub context_enc: usize,
    /// First layer with normalisation, and its groups.
    pub norm_starts: usize,
    /// See `norm_starts`.
    pub norm_groups: usize,
    /// Whether encoder and decoder have residual branches.
    pub dconv: [bool; 2],
    /// Layers of a residual branch; all without dilation if `dilate` is not set.
    pub dconv_depth: usize,
    /// Factor by which they have fewer channels.
    pub dconv_comp: f64,
    /// First layers whose branches attend and remember.
    pub dconv_attn: usize,
    /// See `dconv_attn`.
    pub dconv_lstm: usize,
    /// The transformer between encoder and decoder, if there is one.
    pub transformer: Option<TransformerConfig>,
    /// Rate of the sound.
    pub samplerate: u32,
    /// Samples that the network sees at a time.
    pub segment: usize,
    /// Whether shorter sound is filled up to a segment.
    pub fixed_segment: bool,
}

/// Sizes of the transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct TransformerConfig {
    /// Width, where it differs from the channels around it.
    pub bottom_channels: Option<usize>,
    /// Layers of each branch.
    pub layers: usize,
    /// Width of the hidden layers, relative.
    pub hidden_scale: f64,
    /// Attention heads.
    pub heads: usize,
    /// Whether the input is normalised, and the output of each layer.
    pub norm_in: bool,
    /// See `norm_in`.
    pub norm_out: bool,
    /// Longest wave of the positions.
    pub max_period: f64,
    /// Whether branches have a learned scale.
    pub layer_scale: bool,
    /// GELU instead of ReLU.
    pub gelu: bool,
    /// Weight of the positions.
    pub weight_pos_embed: f32,
    /// Whether the first layer attends to the other branch.
    pub cross_first: bool,
}

/// Limits of what a network can be; beyond them a file is damaged.
const MOST_CHANNELS: usize = 1 << 14;
const MOST_SECONDS: f64 = 600.0;

impl NetConfig {
    /// The network that `kwargs` describe (with `args` before them).
    ///
    /// # Errors
    /// One line on what is wrong or not supported.
    pub fn new(kind: Kind, args: &[Json], kwargs: &Map<String, Json>) -> Result<NetConfig, String> {
        let mut all = kwargs.clone();
        match args {
            [] => {}
            [sources] => {
                all.insert("sources".into(), sources.clone());
            }
            _ => return Err("it was built with more than one argument without a name".into()),
        }
        let a: Arguments = serde_json::from_value(Json::Object(all))
            .map_err(|error| format!("arguments of the network: {error}"))?;
        a.check()?;
        let config = a.config(kind);
        config.check()?;
        Ok(config)
    }

    /// Seconds of a segment.
    pub fn segment_seconds(&self) -> f64 {
        self.segment as f64 / f64::from(self.samplerate)
    }

    fn check(&self) -> Result<(), String> {
        let last = self.depth.saturating_sub(1) as i32;
        let most = self.channels.max(self.channels_time) as f64 * self.growth.powi(last);
        let sizes = [
            ("audio_channels", self.audio_channels, 1..=2),
            (
                "channels",
                self.channels.min(self.channels_time),
                1..=MOST_CHANNELS,
            ),
            ("depth", self.depth, 1..=8),
            ("nfft", self.nfft, 16..=1 << 16),
            ("kernel_size", self.kernel_size, 1..=64),
            ("stride", self.stride, 1..=self.kernel_size),
            ("time_stride", self.time_stride, 1..=32),
            ("context", self.context.max(self.context_enc), 0..=8),
            ("norm_groups", self.norm_groups, 1..=self.channels),
            ("dconv_depth", self.dconv_depth, 0..=8),
            ("sources", self.sources.len(), 1..=64),
        ];
        for (name, value, range) in sizes {
            if !range.contains(&value) {
                return Err(format!("{name} is {value}, wanted {range:?}"));
            }
        }
        let heads = self.transformer.as_ref().map_or(1, |t| t.heads);
        let wrong = match () {
            () if !(1.0..=8.0).contains(&self.growth) || most > MOST_CHANNELS as f64 => "growth",
            () if !(1.0..=256.0).contains(&self.dconv_comp) => "dconv_comp",
            () if !self.nfft.is_multiple_of(4) => "nfft",
            () if heads == 0 => "t_heads",
            () if self.segment < 2 * self.nfft => "segment",
            () if self.segment_seconds() > MOST_SECONDS => "segment",
            () => return Ok(()),
        };
        Err(format!("{wrong} makes no network"))
    }
}

impl Arguments {
    /// Refuses what no published network has.
    fn check(&self) -> Result<(), String> {
        let on = |flag: &Option<Flag>| flag.is_some_and(Flag::on);
        let refused = [
            ("cac=False", self.cac == Some(false)),
            ("rewrite=False", self.rewrite == Some(false)),
            ("hybrid=False", self.hybrid == Some(false)),
            ("hybrid_old", self.hybrid_old == Some(true)),
            (
                "multi_freqs",
                self.multi_freqs.as_ref().is_some_and(|m| !m.is_empty()),
            ),
            (
                "t_emb",
                self.t_emb.as_deref().is_some_and(|emb| emb != "sin"),
            ),
            ("t_norm_first=False", self.t_norm_first == Some(false)),
            (
                "t_norm_in_group",
                on(&self.t_norm_in_group) && self.t_norm_in == Some(false),
            ),
            ("t_group_norm", on(&self.t_group_norm)),
            ("t_sparse_self_attn", on(&self.t_sparse_self_attn)),
            ("t_sparse_cross_attn", on(&self.t_sparse_cross_attn)),
            (
                "t_sin_random_shift",
                self.t_sin_random_shift.is_some_and(|n| n > 0),
            ),
        ];
        match refused.into_iter().find(|(_, is)| *is) {
            Some((name, _)) => Err(format!("networks with {name} are not supported")),
            None => Ok(()),
        }
    }

    fn config(self, kind: Kind) -> NetConfig {
        let hybrid = kind == Kind::Hybrid;
        // The two classes have defaults of their own.
        let either = |h: usize, t: usize| if hybrid { h } else { t };
        let depth = self.depth.unwrap_or(either(6, 4));
        let channels = self.channels.unwrap_or(48);
        let mode = self.dconv_mode.unwrap_or(1);
        let samplerate = self.samplerate.unwrap_or(44_100);
        let seconds = match self.segment {
            None => either(40, 10) as f64,
            Some(Seconds::Number(seconds)) => seconds,
            Some(Seconds::Fraction {
                numerator,
                denominator,
            }) => numerator / denominator,
        };
        let layers = self.t_layers.unwrap_or(5);
        let transformer = (!hybrid && layers > 0).then(|| TransformerConfig {
            bottom_channels: self.bottom_channels.filter(|&n| n > 0),
            layers,
            hidden_scale: self.t_hidden_scale.unwrap_or(4.0),
            heads: self.t_heads.unwrap_or(8),
            norm_in: self.t_norm_in.unwrap_or(true),
            norm_out: self.t_norm_out.is_none_or(Flag::on),
            max_period: self.t_max_period.unwrap_or(10_000.0),
            layer_scale: self.t_layer_scale.unwrap_or(true),
            gelu: self.t_gelu.unwrap_or(true),
            weight_pos_embed: self.t_weight_pos_embed.unwrap_or(1.0) as f32,
            cross_first: self.t_cross_first.unwrap_or(false),
        });
        let lasting = |at: Option<usize>| if hybrid { at.unwrap_or(4) } else { depth };
        NetConfig {
            kind,
            sources: self.sources,
            audio_channels: self.audio_channels.unwrap_or(2),
            channels,
            channels_time: self.channels_time.unwrap_or(channels),
            growth: self.growth.unwrap_or(2.0),
            nfft: self.nfft.unwrap_or(4096),
            depth,
            freq_emb: self.freq_emb.unwrap_or(0.2) as f32,
            emb_scale: self.emb_scale.unwrap_or(10.0) as f32,
            kernel_size: self.kernel_size.unwrap_or(8),
            stride: self.stride.unwrap_or(4),
            time_stride: self.time_stride.unwrap_or(2),
            context: self.context.unwrap_or(1),
            context_enc: self.context_enc.unwrap_or(0),
            norm_starts: self.norm_starts.unwrap_or(4),
            norm_groups: self.norm_groups.unwrap_or(4),
            dconv: [mode & 1 != 0, mode & 2 != 0],
            dconv_depth: self.dconv_depth.unwrap_or(2),
            dconv_comp: self.dconv_comp.unwrap_or(either(4, 8) as f64),
            dconv_attn: lasting(self.dconv_attn),
            dconv_lstm: lasting(self.dconv_lstm),
            transformer,
            samplerate,
            segment: (seconds * f64::from(samplerate)).clamp(0.0, 1e12) as usize,
            fixed_segment: !hybrid && self.use_train_segment.unwrap_or(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(kind: Kind, kwargs: Json) -> Result<NetConfig, String> {
        NetConfig::new(kind, &[], kwargs.as_object().unwrap())
    }

    #[test]
    fn released_arguments_are_read_and_defaults_are_those_of_the_class() {
        let kwargs = json!({
            "sources": ["drums", "bass", "other", "vocals"], "dconv_mode": 3, "bottom_channels": 512,
            "segment": {"_type": "fraction", "numerator": 39, "denominator": 5}, "wiener_iters": 0,
        });
        let ht = config(Kind::Transformer, kwargs).unwrap();
        assert_eq!((ht.segment, ht.depth, ht.dconv), (343_980, 4, [true, true]));
        assert_eq!(ht.transformer.unwrap().bottom_channels, Some(512));
        assert_eq!((ht.dconv_attn, ht.dconv_comp), (4, 8.0));
        let h = config(Kind::Hybrid, json!({"sources": ["a"], "segment": 44})).unwrap();
        assert_eq!((h.segment, h.depth, h.dconv_comp), (44 * 44_100, 6, 4.0));
        assert!(h.transformer.is_none() && !h.fixed_segment);
    }

    #[test]
    fn what_makes_no_network_is_refused_by_name() {
        for (kwargs, word) in [
            (
                json!({"sources": ["a"], "multi_freqs": [0.5]}),
                "multi_freqs",
            ),
            (
                json!({"sources": ["a"], "channels": 1u64 << 40}),
                "channels",
            ),
            (json!({"sources": ["a"], "growth": 1e9}), "growth"),
            (json!({"sources": ["a"], "segment": 1e30}), "segment"),
            (json!({"sources": ["a"], "t_heads": 0}), "t_heads"),
            (json!({"sources": "a"}), "arguments"),
            (json!({}), "sources"),
        ] {
            let error = config(Kind::Transformer, kwargs).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
