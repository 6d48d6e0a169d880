//! The sizes of a network, from the shapes of its tensors.

use audiocpp::weights::Source;

use crate::{LoadError, config::Config, names::Named};

/// Every size that shapes the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetSize {
    /// The language model.
    pub bert: BertSize,
    /// Phonemes in the text encoder's table.
    pub symbols: usize,
    /// Width of the text encoder and the predictor.
    pub hidden: usize,
    /// Half the width of a style.
    pub style: usize,
    /// Convolutions of the text encoder, and their taps.
    pub convs: (usize, usize),
    /// Layers of the duration encoder.
    pub layers: usize,
    /// Most frames of a symbol.
    pub longest: usize,
    /// Blocks of the pitch and energy branches.
    pub prosody: usize,
    /// Channels of the text in the decoder's later blocks.
    pub residual: usize,
    /// Channels out of the decoder's blocks; the last one doubles the steps.
    pub decoder: Vec<usize>,
    /// The vocoder.
    pub generator: GeneratorSize,
}

/// Sizes of the language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BertSize {
    pub symbols: usize,
    pub embedding: usize,
    pub positions: usize,
    pub hidden: usize,
    pub feed_forward: usize,
    pub heads: usize,
    /// How often its one layer is run.
    pub layers: usize,
}

/// Sizes of the vocoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorSize {
    /// Channels in; each upsampling halves them.
    pub channels: usize,
    /// Factor and taps of each upsampling.
    pub upsamples: Vec<(usize, usize)>,
    /// Taps and dilations of the residual blocks behind each upsampling.
    pub blocks: Vec<(usize, Vec<usize>)>,
    /// Taps of the source's residual block at each upsampling.
    pub source_taps: Vec<usize>,
    /// Harmonics of the source.
    pub harmonics: usize,
    /// Length of the last transform, and its hop.
    pub transform: (usize, usize),
}

impl GeneratorSize {
    /// Steps of the source's spectrum for each step of the pitch.
    pub fn factor(&self) -> usize {
        self.upsamples.iter().map(|(factor, _)| factor).product()
    }

    /// Samples for each step of the pitch.
    pub fn hop(&self) -> usize {
        self.factor() * self.transform.1
    }
}

/// Sizes beyond this are no network's.
const MOST: usize = 1 << 14;

struct Finder<'n>(&'n Named);

impl Finder<'_> {
    fn wrong(&self, problem: String) -> LoadError {
        LoadError::package(self.0.path(), problem)
    }

    /// The shape of a weight, also of one that is stored with its gain apart.
    fn shape<const N: usize>(&self, module: &str) -> Result<[usize; N], LoadError> {
        let names = ["weight", "weight_v", "parametrizations.weight.original1"];
        let mut names = names.iter().map(|part| format!("{module}.{part}"));
        let found = names
            .find_map(|name| self.0.shape(&name))
            .ok_or_else(|| self.wrong(format!("it has no tensor `{module}.weight`")))?;
        let mut shape = found.to_vec();
        shape.resize(shape.len().max(N), 1);
        match <[usize; N]>::try_from(shape) {
            Ok(shape) if shape.iter().all(|n| (1..=MOST).contains(n)) => Ok(shape),
            _ => Err(self.wrong(format!("`{module}.weight` has the shape {found:?}"))),
        }
    }

    /// How many of the modules `name(0)`, `name(1)`, .. there are, told by their biases.
    fn count(&self, name: impl Fn(usize) -> String) -> Result<usize, LoadError> {
        let there = |i: &usize| self.0.find(&format!("{}.bias", name(*i))).is_some();
        match (0..100).take_while(there).count() {
            0 => Err(self.wrong(format!("it has no tensor `{}.bias`", name(0)))),
            n => Ok(n),
        }
    }
}

impl NetSize {
    /// Reads them off `weights`, and what shapes do not tell from `config`.
    ///
    /// # Errors
    /// [`LoadError::Package`].
    pub fn read(weights: &Named, config: &Config) -> Result<NetSize, LoadError> {
        let find = Finder(weights);
        let [symbols, hidden] = find.shape("text_encoder.embedding")?;
        let [_, _, taps] = find.shape("text_encoder.cnn.0.0")?;
        let [_, style] = find.shape("predictor.text_encoder.lstms.1.fc")?;
        let [longest, _] = find.shape("predictor.duration_proj.linear_layer")?;
        let [residual, _, _] = find.shape("decoder.asr_res.0")?;
        let blocks = find.count(|i| format!("decoder.decode.{i}.conv1"))?;
        let width = |i: usize| Ok(find.shape::<3>(&format!("decoder.decode.{i}.conv1"))?[0]);
        if !hidden.is_multiple_of(2) {
            return Err(find.wrong(format!("a width of {hidden} has no halves")));
        }
        Ok(NetSize {
            bert: bert(&find, config)?,
            symbols,
            hidden,
            style,
            convs: (find.count(|i| format!("text_encoder.cnn.{i}.0"))?, taps),
            layers: find.count(|i| format!("predictor.text_encoder.lstms.{}.fc", 2 * i + 1))?,
            longest,
            prosody: find.count(|i| format!("predictor.F0.{i}.conv1"))?,
            residual,
            decoder: (0..blocks).map(width).collect::<Result<_, LoadError>>()?,
            generator: generator(&find, config)?,
        })
    }
}

fn bert(find: &Finder, config: &Config) -> Result<BertSize, LoadError> {
    let [symbols, embedding] = find.shape("bert.embeddings.word_embeddings")?;
    let [positions, _] = find.shape("bert.embeddings.position_embeddings")?;
    let [hidden, _] = find.shape("bert.encoder.embedding_hidden_mapping_in")?;
    let layer = "bert.encoder.albert_layer_groups.0.albert_layers.0";
    let [feed_forward, _] = find.shape(&format!("{layer}.ffn"))?;
    let heads = config.plbert.num_attention_heads;
    match hidden.is_multiple_of(heads) {
        true => Ok(BertSize {
            symbols,
            embedding,
            positions,
            hidden,
            feed_forward,
            heads,
            layers: config.plbert.num_hidden_layers,
        }),
        false => Err(find.wrong(format!("{hidden} channels for {heads} heads"))),
    }
}

fn generator(find: &Finder, config: &Config) -> Result<GeneratorSize, LoadError> {
    let name = |part: &str, i: usize| format!("decoder.generator.{part}.{i}");
    let net = &config.istftnet;
    let [channels, _, _] = find.shape(&name("ups", 0))?;
    let ups = find.count(|i| name("ups", i))?;
    let upsample = |i: usize| {
        let [_, _, taps] = find.shape(&name("ups", i))?;
        let fits = |s: &usize| taps.is_multiple_of(*s) && (taps - s).is_multiple_of(2);
        let factor = net.upsample_rates.get(i).copied().filter(fits);
        factor
            .map(|factor| (factor, taps))
            .ok_or_else(|| find.wrong(format!("{taps} taps for {:?}", net.upsample_rates)))
    };
    let first_conv = |part: &str, i: usize| format!("{}.convs1.0", name(part, i));
    let all = find.count(|i| first_conv("resblocks", i))?;
    let block = |(i, dilations): (usize, &Vec<usize>)| {
        let [_, _, taps] = find.shape(&first_conv("resblocks", i))?;
        Ok((taps, dilations.clone()))
    };
    let source = |i: usize| Ok(find.shape::<3>(&first_conv("noise_res", i))?[2]);
    let [_, harmonics] = find.shape("decoder.generator.m_source.l_linear")?;
    let size = GeneratorSize {
        channels,
        upsamples: (0..ups).map(upsample).collect::<Result<_, LoadError>>()?,
        blocks: net
            .resblock_dilation_sizes
            .iter()
            .enumerate()
            .map(block)
            .collect::<Result<_, LoadError>>()?,
        source_taps: (0..ups).map(source).collect::<Result<_, LoadError>>()?,
        harmonics,
        transform: (net.gen_istft_n_fft, net.gen_istft_hop_size),
    };
    let odd = size
        .blocks
        .iter()
        .map(|block| block.0)
        .chain(size.source_taps.iter().copied());
    let sane = all == ups * size.blocks.len()
        && ups == net.upsample_rates.len()
        && channels >> ups << ups == channels
        && odd.into_iter().all(|taps| taps % 2 == 1);
    match sane {
        true => Ok(size),
        false => Err(find.wrong(format!("{all} residual blocks for a vocoder of {size:?}"))),
    }
}
