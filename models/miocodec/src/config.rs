//! The numbers of a codec, from its `config.yaml`: a tree of classes and their arguments.

use audiocpp::nn::Fsq;
use yaml_rust2::{Yaml, YamlLoader};

/// The class at the root of a configuration.
pub const CLASS: &str = "miocodec.model.MioCodecModel";
/// Largest size that any part of a network may have.
const MOST: usize = 1 << 16;
/// Rates that sound may have.
const RATES: [usize; 2] = [8_000, 192_000];

/// Sizes of a [`Transformer`](crate::transformer::Transformer).
#[derive(Debug, Clone, PartialEq)]
pub struct TransformerConfig {
    /// Width of the layers.
    pub dim: usize,
    /// Width of the result, where it is projected.
    pub output: Option<usize>,
    /// Number of layers.
    pub layers: usize,
    /// Heads of attention.
    pub heads: usize,
    /// Steps that attention reaches over in all; none sees everything.
    pub window: Option<usize>,
    /// Base of the rotary embedding, where positions are told.
    pub rope_theta: Option<f64>,
    /// Width of the vector that normalisations depend on, where they do.
    pub condition: Option<usize>,
}

impl TransformerConfig {
    /// Width of the result.
    pub fn output(&self) -> usize {
        self.output.unwrap_or(self.dim)
    }

    /// Width between the linear maps of a layer.
    pub fn hidden(&self) -> usize {
        (8 * self.dim / 3).next_multiple_of(256)
    }
}

/// Sizes of the global encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalConfig {
    /// Width of the features it reads.
    pub input: usize,
    /// Width of the global vector.
    pub output: usize,
    /// ConvNeXt blocks.
    pub layers: usize,
    /// Width of the blocks.
    pub dim: usize,
    /// Width inside a block.
    pub hidden: usize,
}

/// What turns tokens and a global vector into sound.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// Before the steps become shorter.
    pub prenet: TransformerConfig,
    /// Steps that each token's step becomes.
    pub upsample: usize,
    /// With normalisations by the global vector.
    pub decoder: TransformerConfig,
    /// The way from there to sound.
    pub kind: DecoderKind,
}

/// The two kinds of decoders.
#[derive(Debug, Clone, PartialEq)]
pub enum DecoderKind {
    /// Straight to spectra.
    Wave {
        /// ResNet blocks before and after the transformer.
        blocks: usize,
        /// Taps of their convolutions.
        kernel: usize,
        /// Groups of their normalisations.
        groups: usize,
        /// Factor and taps of each stage of the up-sampler; none without one.
        upsampler: Vec<[usize; 2]>,
    },
    /// To a mel spectrogram, for a vocoder.
    Mel {
        /// Channels inside the post-net.
        channels: usize,
        /// Its taps.
        kernel: usize,
        /// Its layers.
        layers: usize,
    },
}

/// All of a codec but WavLM and the vocoder.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Samples per second of the sound.
    pub sample_rate: u32,
    /// Samples of a transform.
    pub n_fft: usize,
    /// Samples from one transform to the next.
    pub hop: usize,
    /// Layers of WavLM, counted from 1, whose mean becomes tokens.
    pub local_layers: Vec<usize>,
    /// Layers whose mean becomes the global vector.
    pub global_layers: Vec<usize>,
    /// Whether the local mean is normalised over time.
    pub normalize: bool,
    /// Steps of WavLM for a token.
    pub downsample: usize,
    /// The encoder of tokens.
    pub local_encoder: TransformerConfig,
    /// The quantiser.
    pub quantizer: Fsq,
    /// Width of a token's embedding.
    pub content: usize,
    /// The encoder of the global vector.
    pub global: GlobalConfig,
    /// The decoder.
    pub decoder: DecoderConfig,
}

impl Config {
    /// Reads the text of a `config.yaml`; what is wrong with it is told in a few words.
    ///
    /// # Errors
    /// No YAML, another class, missing or impossible sizes, arguments that are not supported.
    pub fn parse(text: &str) -> Result<Config, String> {
        let documents = YamlLoader::load_from_str(text).map_err(|e| e.to_string())?;
        let root = Node::root(documents.first().unwrap_or(&Yaml::BadValue));
        let model = root.at("model");
        let class = model.at("class_path");
        if class.yaml.as_str() != Some(CLASS) {
            return Err(class.wrong(&format!("`{CLASS}`")));
        }
        let args = model.at("init_args");
        let config = args.at("config");
        config.refuse_false("use_conv_downsample")?;
        let config = Config {
            sample_rate: config.within("sample_rate", RATES)? as u32,
            n_fft: config.size("n_fft")?,
            hop: config.size("hop_length")?,
            local_layers: config.sizes("local_ssl_layers")?,
            global_layers: config.sizes("global_ssl_layers")?,
            normalize: config.flag("normalize_ssl_features", true)?,
            downsample: config.size("downsample_factor")?,
            local_encoder: transformer(&args.at("local_encoder"))?,
            quantizer: quantizer(&args.at("local_quantizer").at("init_args"))?,
            content: args
                .at("local_quantizer")
                .at("init_args")
                .size("output_dim")?,
            global: global(&args.at("global_encoder").at("init_args"))?,
            decoder: decoder(&args, &config)?,
        };
        config.check()?;
        Ok(config)
    }

    /// The layer of WavLM up to which it has to run.
    pub fn ssl_layers(&self) -> usize {
        let layers = self.local_layers.iter().chain(&self.global_layers);
        layers.copied().max().unwrap_or(0)
    }

    /// Bins of the mel spectrogram, if there is one.
    pub fn mels(&self) -> Option<usize> {
        match self.decoder.kind {
            DecoderKind::Mel { .. } => Some(self.decoder.decoder.output()),
            DecoderKind::Wave { .. } => None,
        }
    }

    /// How parts fit together.
    fn check(&self) -> Result<(), String> {
        let agree = |what: &str, a: usize, b: usize| match a == b {
            true => Ok(()),
            false => Err(format!("{what} do not agree: {a} and {b}")),
        };
        let DecoderConfig {
            prenet, decoder, ..
        } = &self.decoder;
        agree(
            "widths of tokens and of the decoder's prenet",
            self.content,
            prenet.dim,
        )?;
        agree(
            "widths of the prenet's result and of the decoder",
            prenet.output(),
            decoder.dim,
        )?;
        agree(
            "widths of the global vector and of the decoder's condition",
            self.global.output,
            decoder.condition.unwrap_or(self.global.output),
        )?;
        if let DecoderKind::Wave {
            groups, upsampler, ..
        } = &self.decoder.kind
        {
            agree(
                "widths inside and behind the decoder",
                decoder.dim,
                decoder.output(),
            )?;
            // Each stage of the up-sampler halves the width.
            let stages = upsampler.len().min(16);
            let mut widths = (0..=stages).map(|i| decoder.dim >> i);
            let grouped = |width: usize| width > 0 && width.is_multiple_of(width.min(*groups));
            if !decoder.dim.is_multiple_of(1 << stages) || !widths.all(grouped) {
                return Err(format!(
                    "a width of {} makes no {groups} groups after {} halvings",
                    decoder.dim,
                    upsampler.len()
                ));
            }
        }
        let layers = self.local_layers.iter().chain(&self.global_layers);
        if layers.clone().any(|&l| l > 12) || self.local_layers.is_empty() {
            return Err("the layers of WavLM are 1 to 12".into());
        }
        if self.global_layers.is_empty() {
            return Err("no layer of WavLM for the global vector".into());
        }
        // Windows whose squares are added up leave no gaps.
        let even = |n: usize| n.is_multiple_of(2);
        if !even(self.n_fft) || self.hop * 2 > self.n_fft || !even(self.n_fft - self.hop) {
            return Err(format!(
                "transforms of {} samples every {} make no sound; wanted even ones that overlap \
                 by half at least",
                self.n_fft, self.hop
            ));
        }
        Ok(())
    }
}

fn decoder(args: &Node, config: &Node) -> Result<DecoderConfig, String> {
    let wave = config.flag("use_wave_decoder", false)?;
    let name = if wave { "wave" } else { "mel" };
    let key = |rest: &str| format!("{name}_{rest}");
    let mode = config.at(&key("interpolation_mode"));
    if mode.yaml.as_str().unwrap_or("linear") != "linear" {
        return Err(mode.wrong("`linear`"));
    }
    let kind = match wave {
        true => {
            let padding = config.at("istft_padding");
            if padding.yaml.as_str().unwrap_or("same") != "same" {
                return Err(padding.wrong("`same`"));
            }
            DecoderKind::Wave {
                blocks: config.size("wave_resnet_num_blocks")?,
                kernel: config.size("wave_resnet_kernel_size")?,
                groups: config.size("wave_resnet_num_groups")?,
                upsampler: upsampler(config)?,
            }
        }
        false => {
            let post = args.at("mel_postnet").at("init_args");
            post.refuse_false("use_layer_norm")?;
            DecoderKind::Mel {
                channels: post.size("channels")?,
                kernel: post.size("kernel_size")?,
                layers: post.size("num_layers")?,
            }
        }
    };
    Ok(DecoderConfig {
        prenet: transformer(&args.at(&key("prenet")))?,
        upsample: config.size(&key("upsample_factor"))?,
        decoder: transformer(&args.at(&key("decoder")))?,
        kind,
    })
}

/// The stages of the up-sampler; each keeps its length times its factor.
fn upsampler(config: &Node) -> Result<Vec<[usize; 2]>, String> {
    let factors = config.at("wave_upsampler_factors");
    if factors.is_absent() {
        return Ok(Vec::new());
    }
    let kernels = config.sizes("wave_upsampler_kernel_sizes")?;
    let factors_found = config.sizes("wave_upsampler_factors")?;
    let stages: Vec<[usize; 2]> = factors_found
        .into_iter()
        .zip(kernels.iter().copied())
        .map(|(factor, kernel)| [factor, kernel])
        .collect();
    let fits = |[factor, kernel]: &[usize; 2]| {
        kernel.is_multiple_of(*factor) && (kernel - factor).is_multiple_of(2)
    };
    match stages.len() == kernels.len() && stages.iter().all(fits) {
        true => Ok(stages),
        false => Err(factors.wrong("as many factors as kernel sizes that are their odd multiples")),
    }
}

fn transformer(node: &Node) -> Result<TransformerConfig, String> {
    let args = node.at("init_args");
    let optional = |key: &str| match args.at(key).is_absent() {
        true => Ok(None),
        false => args.size(key).map(Some),
    };
    let (dim, heads) = (args.size("dim")?, args.size("n_heads")?);
    if !dim.is_multiple_of(2 * heads) {
        return Err(args.wrong("`dim` to be an even multiple of `n_heads`"));
    }
    let condition = optional("adanorm_condition_dim")?;
    if condition.is_some() {
        args.refuse_false("use_adaln_zero")?;
    }
    Ok(TransformerConfig {
        dim,
        output: optional("output_dim")?,
        layers: args.size("n_layers")?,
        heads,
        window: optional("window_size")?,
        rope_theta: match args.flag("use_rope", false)? {
            true => Some(args.number("rope_theta", 10_000.0)?),
            false => None,
        },
        condition,
    })
}

fn quantizer(args: &Node) -> Result<Fsq, String> {
    let levels = args.at("levels");
    Fsq::new(&args.sizes("levels")?).ok_or_else(|| levels.wrong("levels of 2 or more"))
}

fn global(args: &Node) -> Result<GlobalConfig, String> {
    Ok(GlobalConfig {
        input: args.size("input_channels")?,
        output: args.size("output_channels")?,
        layers: args.size("num_layers")?,
        dim: args.size("dim")?,
        hidden: args.size("intermediate_dim")?,
    })
}

/// A place in the tree, with the way to it for messages.
struct Node<'y> {
    yaml: &'y Yaml,
    path: String,
}

impl<'y> Node<'y> {
    fn root(yaml: &'y Yaml) -> Node<'y> {
        Node {
            yaml,
            path: String::new(),
        }
    }

    fn at(&self, key: &str) -> Node<'y> {
        let dot = if self.path.is_empty() { "" } else { "." };
        Node {
            yaml: &self.yaml[key],
            path: format!("{}{dot}{key}", self.path),
        }
    }

    fn is_absent(&self) -> bool {
        matches!(self.yaml, Yaml::BadValue | Yaml::Null)
    }

    /// The message about a value that is not what is wanted.
    fn wrong(&self, wanted: &str) -> String {
        let found = match self.yaml {
            Yaml::BadValue => "nothing".to_owned(),
            Yaml::Null => "null".to_owned(),
            Yaml::String(text) | Yaml::Real(text) => format!("`{text}`"),
            Yaml::Integer(n) => n.to_string(),
            Yaml::Boolean(b) => b.to_string(),
            Yaml::Array(_) => "a list".to_owned(),
            _ => "a tree".to_owned(),
        };
        format!("`{}` is {found}, wanted {wanted}", self.path)
    }

    fn within(&self, key: &str, [least, most]: [usize; 2]) -> Result<usize, String> {
        let node = self.at(key);
        let found = node.yaml.as_i64().and_then(|n| usize::try_from(n).ok());
        found
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| node.wrong(&format!("a whole number from {least} to {most}")))
    }

    fn size(&self, key: &str) -> Result<usize, String> {
        self.within(key, [1, MOST])
    }

    fn sizes(&self, key: &str) -> Result<Vec<usize>, String> {
        let node = self.at(key);
        let size = |yaml: &Yaml| yaml.as_i64().filter(|n| (1..=MOST as i64).contains(n));
        let found = node.yaml.as_vec().filter(|list| list.len() <= 64);
        let sizes = found.and_then(|list| list.iter().map(size).collect::<Option<Vec<_>>>());
        let sizes = sizes.map(|sizes| sizes.into_iter().map(|n| n as usize).collect());
        sizes.ok_or_else(|| node.wrong(&format!("a list of whole numbers from 1 to {MOST}")))
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool, String> {
        let node = self.at(key);
        match node.is_absent() {
            true => Ok(default),
            false => node
                .yaml
                .as_bool()
                .ok_or_else(|| node.wrong("true or false")),
        }
    }

    fn number(&self, key: &str, default: f64) -> Result<f64, String> {
        let node = self.at(key);
        if node.is_absent() {
            return Ok(default);
        }
        let found = node.yaml.as_f64().or(node.yaml.as_i64().map(|n| n as f64));
        found
            .filter(|n| n.is_finite() && *n > 1.0)
            .ok_or_else(|| node.wrong("a number above 1"))
    }

    /// Refuses a variant that a flag turns off and nobody publishes.
    fn refuse_false(&self, key: &str) -> Result<(), String> {
        match self.flag(key, true)? {
            true => Ok(()),
            false => Err(self.at(key).wrong("true: the other way is not supported")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAVE: &str = include_str!("../../../tests/data/miocodec/config.yaml");
    const WAVE_44K: &str = include_str!("../../../tests/data/miocodec/config_wave_44k.yaml");
    const MEL: &str = include_str!("../../../tests/data/miocodec/config_mel.yaml");

    #[test]
    fn the_three_variants_are_read() {
        let config = Config::parse(WAVE).unwrap();
        assert_eq!(
            (config.sample_rate, config.n_fft, config.hop),
            (24_000, 1920, 480)
        );
        assert_eq!((config.ssl_layers(), config.mels()), (9, None));
        assert_eq!(config.local_encoder.hidden(), 256);
        assert_eq!(config.local_encoder.window, Some(13));
        assert_eq!(config.decoder.decoder.condition, Some(32));
        let config = Config::parse(WAVE_44K).unwrap();
        let DecoderKind::Wave { upsampler, .. } = config.decoder.kind else {
            panic!("{:?}", config.decoder);
        };
        assert_eq!(upsampler, [[3, 9], [3, 9]]);
        let config = Config::parse(MEL).unwrap();
        assert_eq!((config.mels(), config.decoder.upsample), (Some(16), 4));
    }

    #[test]
    fn real_widths_are_those_of_the_release() {
        let mut config = Config::parse(WAVE).unwrap().local_encoder;
        for (dim, hidden) in [(768, 2048), (512, 1536)] {
            config.dim = dim;
            assert_eq!(config.hidden(), hidden);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let refused = |from: &str, to: &str, says: &str| {
            assert!(WAVE.contains(from), "{from}");
            let error = Config::parse(&WAVE.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(says), "{error}");
        };
        refused("MioCodecModel", "OtherModel", "model.class_path");
        refused("n_fft: 1920", "n_fft: 700", "overlap by half");
        refused(
            "n_fft: 1920",
            "n_fft: -4",
            "`model.init_args.config.n_fft` is -4",
        );
        refused(
            "n_heads: 4",
            "n_heads: 0",
            "local_encoder.init_args.n_heads",
        );
        refused("sample_rate: 24000", "sample_rate: 1", "sample_rate");
        refused(
            "use_conv_downsample: true",
            "use_conv_downsample: false",
            "not supported",
        );
        refused(
            "levels: [8, 8, 8, 5, 5]",
            "levels: [8, 1]",
            "levels of 2 or more",
        );
        refused(
            "local_ssl_layers: [6, 9]",
            "local_ssl_layers: [6, 19]",
            "1 to 12",
        );
        refused("output_dim: 48", "output_dim: 50", "do not agree");
        refused("num_groups: 32", "num_groups: 48", "48 groups");
        for nonsense in ["", ":", "- 1", "model: [", "{a: *b}"] {
            assert!(Config::parse(nonsense).is_err(), "{nonsense}");
        }
    }
}
