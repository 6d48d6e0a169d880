//! What shapes the network, read from its weights.

use audiocpp::weights::Source;

use crate::{LoadError, names::Named};

/// Sizes beyond this are no network's.
const MOST: usize = 1 << 14;

/// Sizes of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetSize {
    /// What the decoder knows of the symbols.
    pub text: TextSize,
    /// What the durations and the melody are made from.
    pub prosody: TextSize,
    /// Blocks that make the melody.
    pub melody: Vec<BlockSize>,
    /// Blocks of the decoder.
    pub decoder: Vec<BlockSize>,
    /// Channels of the decoder, and taps of its first convolution.
    pub decoder_input: [usize; 2],
    /// Bins of a spectrum.
    pub bins: usize,
}

/// Sizes of a text encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSize {
    /// Rows of its table.
    pub symbols: usize,
    /// Channels.
    pub width: usize,
    /// Its convolutions.
    pub blocks: Vec<BlockSize>,
    /// Hidden channels of its attention block.
    pub hidden: usize,
    /// How often that block is run.
    pub rounds: usize,
}

/// Sizes of a ConvNeXt block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize {
    /// Channels.
    pub width: usize,
    /// Channels inside.
    pub hidden: usize,
    /// Taps.
    pub kernel: usize,
    /// Steps between taps.
    pub dilation: usize,
}

impl NetSize {
    /// Reads the sizes from the weights.
    ///
    /// # Errors
    /// Weights that make no such network.
    pub fn read(named: &Named) -> Result<NetSize, LoadError> {
        let finder = Finder(named);
        let [width, inputs, taps] = finder.shape("m.dec_in.weight")?;
        let [rows, _] = finder.shape("m.head.weight")?;
        let size = NetSize {
            text: finder.text("m.text")?,
            prosody: finder.text("pn.text")?,
            melody: finder.blocks("pn.pro")?,
            decoder: finder.blocks("m.dec")?,
            decoder_input: [width, taps],
            bins: rows / 5,
        };
        if inputs != size.text.width + 2 {
            let problem = format!(
                "the decoder reads {inputs} channels, wanted {} of the text and 2 of the melody",
                size.text.width
            );
            return Err(finder.wrong(problem));
        }
        Ok(size)
    }
}

struct Finder<'n>(&'n Named);

impl Finder<'_> {
    fn wrong(&self, problem: String) -> LoadError {
        LoadError::package(self.0.path(), problem)
    }

    fn shape<const N: usize>(&self, name: &str) -> Result<[usize; N], LoadError> {
        let info = self.0.find(name);
        let info = info.ok_or_else(|| self.wrong(format!("it has no tensor `{name}`")))?;
        match <[usize; N]>::try_from(&info.shape[..]) {
            Ok(shape) if shape.iter().all(|&n| (1..=MOST).contains(&n)) => Ok(shape),
            _ => Err(self.wrong(format!("`{name}` has the shape {:?}", info.shape))),
        }
    }

    fn text(&self, name: &str) -> Result<TextSize, LoadError> {
        let [symbols, width] = self.shape(&format!("{name}.emb.weight"))?;
        let [hidden] = self.shape(&format!("{name}.attn.linear1.bias"))?;
        Ok(TextSize {
            symbols,
            width,
            blocks: self.blocks(&format!("{name}.convs"))?,
            hidden,
            rounds: self.0.uses(&format!("{name}.attn.linear1.bias"), "Add"),
        })
    }

    /// The blocks `name.0`, `name.1`, ...
    fn blocks(&self, name: &str) -> Result<Vec<BlockSize>, LoadError> {
        let kernel = |i: usize| format!("{name}.{i}.dw.weight");
        let there = (0..64).take_while(|i| self.0.find(&kernel(*i)).is_some());
        there
            .map(|i| {
                let [width, _, taps] = self.shape(&kernel(i))?;
                let [hidden] = self.shape(&format!("{name}.{i}.pw1.bias"))?;
                Ok(BlockSize {
                    width,
                    hidden,
                    kernel: taps,
                    dilation: self.0.dilation(&kernel(i)),
                })
            })
            .collect()
    }
}
