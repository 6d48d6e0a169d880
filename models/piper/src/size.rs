//! The sizes of a network, from the shapes of its tensors and the nodes of its graph.

use std::collections::HashMap;

use audiocpp::{
    nn::{HifiGanSize, Spline, WaveNetSize},
    weights::Source,
};

use crate::{
    LoadError,
    config::MmsConfig,
    names::{Named, ints, module},
};

/// Every size that shapes the network.
#[derive(Debug, Clone, PartialEq)]
pub struct NetSize {
    /// Rows of the symbol table.
    pub symbols: usize,
    /// Width of the text encoder.
    pub hidden: usize,
    /// Its blocks.
    pub layers: usize,
    /// Width of one attention head.
    pub head: usize,
    /// Distances that attention knows, on both sides together with 0.
    pub distances: usize,
    /// Width and taps of the feed-forward convolutions.
    pub feed_forward: (usize, usize),
    /// Channels of the latents.
    pub latent: usize,
    /// How durations are found.
    pub durations: DurationSize,
    /// Names of the coupling layers, in the order in which they are run.
    pub couplings: Vec<String>,
    /// Their networks.
    pub wavenet: WaveNetSize,
    /// The vocoder.
    pub vocoder: HifiGanSize,
    /// Speakers, and the width of their vectors; 0 and 0 for a single one.
    pub speakers: (usize, usize),
}

/// The two kinds of duration predictors.
#[derive(Debug, Clone, PartialEq)]
pub enum DurationSize {
    /// A flow that turns noise into durations.
    Stochastic {
        /// Width, taps and layers of its dilated stacks.
        stack: [usize; 3],
        /// Numbers of its spline layers, in the order in which they are run.
        flows: Vec<usize>,
        /// Its splines.
        spline: Spline,
    },
    /// Two convolutions: width and taps.
    Plain(usize, usize),
}

/// Sizes beyond this are no network's.
const MOST: usize = 1 << 16;

struct Finder<'n>(&'n Named);

impl Finder<'_> {
    fn wrong(&self, problem: String) -> LoadError {
        LoadError::package(self.0.path(), problem)
    }

    fn shape<const N: usize>(&self, name: &str) -> Result<[usize; N], LoadError> {
        let found = self
            .0
            .shape(name)
            .ok_or_else(|| self.wrong(format!("it has no tensor `{name}`")))?;
        // Convolutions of one tap may be stored as matrices.
        let mut shape = found.to_vec();
        shape.resize(shape.len().max(N), 1);
        match <[usize; N]>::try_from(shape) {
            Ok(shape) if shape.iter().all(|&n| (1..=MOST).contains(&n)) => Ok(shape),
            _ => Err(self.wrong(format!("`{name}` has the shape {found:?}"))),
        }
    }

    /// The shape of a kernel, also of one that is stored with its gain apart.
    fn kernel(&self, module: &str) -> Result<[usize; 3], LoadError> {
        let names = ["weight_v", "parametrizations.weight.original1"];
        let parts = names.map(|part| format!("{module}.{part}"));
        match parts.iter().find(|name| self.0.shape(name).is_some()) {
            Some(name) => self.shape(name),
            None => self.shape(&format!("{module}.weight")),
        }
    }

    fn count(&self, name: impl Fn(usize) -> String, what: &str) -> Result<usize, LoadError> {
        let numbers = self.0.numbers(name);
        match !numbers.is_empty() && numbers.iter().copied().eq(0..numbers.len()) {
            true => Ok(numbers.len()),
            false => Err(self.wrong(format!("its {what} have the numbers {numbers:?}"))),
        }
    }
}

impl NetSize {
    /// Reads them off `weights`, and what shapes do not tell from `config` or, in its absence,
    /// from the graph.
    ///
    /// # Errors
    /// [`LoadError::Package`].
    pub fn read(weights: &Named, config: Option<&MmsConfig>) -> Result<NetSize, LoadError> {
        let find = Finder(weights);
        let [symbols, hidden] = find.shape("enc_p.emb.weight")?;
        let [_, distances, head] = find.shape("enc_p.encoder.attn_layers.0.emb_rel_k")?;
        let [filter, _, taps] = find.shape("enc_p.encoder.ffn_layers.0.conv_1.weight")?;
        let [stats, _, _] = find.shape("enc_p.proj.weight")?;
        if !hidden.is_multiple_of(head) || distances % 2 == 0 || stats % 4 != 0 {
            return Err(find.wrong(format!(
                "{hidden} channels in heads of {head}, {distances} distances, {stats} statistics"
            )));
        }
        let speakers = match weights.shape("emb_g.weight") {
            Some(_) => find.shape("emb_g.weight")?.into(),
            None => (0, 0),
        };
        let geometry = Geometry::of(weights);
        let condition = speakers.1;
        let (couplings, wavenet) = flow(&find, &geometry, config, condition)?;
        Ok(NetSize {
            symbols,
            hidden,
            layers: find.count(
                |i| format!("enc_p.encoder.attn_layers.{i}.emb_rel_k"),
                "attention layers",
            )?,
            head,
            distances,
            feed_forward: (filter, taps),
            latent: stats / 2,
            durations: durations(&find, config)?,
            couplings,
            wavenet,
            vocoder: vocoder(&find, &geometry, config, condition)?,
            speakers,
        })
    }

    /// Samples for each frame.
    pub fn hop(&self) -> usize {
        self.vocoder.hop()
    }
}

fn durations(find: &Finder, config: Option<&MmsConfig>) -> Result<DurationSize, LoadError> {
    if find.0.shape("dp.conv_1.weight").is_some() {
        let [width, _, taps] = find.shape("dp.conv_1.weight")?;
        return Ok(DurationSize::Plain(width, taps));
    }
    let [width, _, taps] = find.shape("dp.convs.convs_sep.0.weight")?;
    let layers = find.count(|i| format!("dp.convs.convs_sep.{i}.bias"), "dilated layers")?;
    // The first of the flows (number 1) is trained but never run.
    let mut flows = find.0.numbers(|i| format!("dp.flows.{i}.pre.bias"));
    flows.retain(|&number| number > 1);
    flows.reverse();
    let first = flows.first().copied().unwrap_or(0);
    let [parameters, _, _] = find.shape(&format!("dp.flows.{first}.proj.weight"))?;
    let spline = Spline {
        bins: config.map_or(parameters.div_ceil(3), |c| c.duration_predictor_flow_bins),
        bound: config.map_or(5.0, |c| c.duration_predictor_tail_bound),
    };
    if spline.bins < 2 || spline.parameters() != parameters {
        return Err(find.wrong(format!(
            "{parameters} numbers for a spline of {} bins",
            spline.bins
        )));
    }
    Ok(DurationSize::Stochastic {
        stack: [width, taps, layers],
        flows,
        spline,
    })
}

fn flow(
    find: &Finder,
    geometry: &Geometry,
    config: Option<&MmsConfig>,
    condition: usize,
) -> Result<(Vec<String>, WaveNetSize), LoadError> {
    let mut numbers = find.0.numbers(|i| format!("flow.flows.{i}.pre.bias"));
    numbers.reverse();
    let Some(first) = numbers.first().filter(|_| numbers.len().is_multiple_of(2)) else {
        return Err(find.wrong(format!(
            "its flow has the layers {numbers:?}; an even number of them is wanted"
        )));
    };
    let first = format!("flow.flows.{first}.enc.in_layers");
    let [_, channels, kernel] = find.kernel(&format!("{first}.0"))?;
    let second = geometry.dilation(&format!("{first}.1"));
    let wavenet = WaveNetSize {
        channels,
        kernel,
        dilation_rate: config.map_or(second, |c| c.wavenet_dilation_rate),
        layers: find.count(|i| format!("{first}.{i}.bias"), "gated layers")?,
        condition,
    };
    let names = numbers.iter().map(|n| format!("flows.{n}")).collect();
    Ok((names, wavenet))
}

fn vocoder(
    find: &Finder,
    geometry: &Geometry,
    config: Option<&MmsConfig>,
    condition: usize,
) -> Result<HifiGanSize, LoadError> {
    let [channels, inputs, _] = find.kernel("dec.conv_pre")?;
    let ups = find.count(|i| format!("dec.ups.{i}.bias"), "upsamplings")?;
    let upsample = |i: usize| {
        let module = format!("dec.ups.{i}");
        let [_, _, kernel] = find.kernel(&module)?;
        let stride = match config {
            Some(config) => config.upsample_rates.get(i).copied(),
            None => geometry.strides.get(&module).copied(),
        };
        let fits =
            |s: &usize| *s > 1 && kernel.is_multiple_of(*s) && (kernel - s).is_multiple_of(2);
        match stride.filter(fits) {
            Some(stride) => Ok((stride, kernel)),
            None => Err(find.wrong(format!(
                "`{module}` takes steps of {stride:?} with {kernel} taps"
            ))),
        }
    };
    let double = find.0.shape("dec.resblocks.0.convs1.0.bias").is_some();
    let convs = if double { "convs1" } else { "convs" };
    let total = find.count(
        |i| format!("dec.resblocks.{i}.{convs}.0.bias"),
        "residual blocks",
    )?;
    let block = |j: usize| {
        let module = |m: usize| format!("dec.resblocks.{j}.{convs}.{m}");
        let [_, _, kernel] = find.kernel(&module(0))?;
        let layers = find.count(|m| format!("{}.bias", module(m)), "residual layers")?;
        let dilation = |m: usize| match config {
            Some(config) => *config
                .resblock_dilation_sizes
                .get(j)
                .and_then(|sizes| sizes.get(m))
                .unwrap_or(&1),
            None => geometry.dilation(&module(m)),
        };
        Ok((kernel, (0..layers).map(dilation).collect()))
    };
    let blocks = total / ups;
    if total % ups != 0 || channels >> ups << ups != channels {
        return Err(find.wrong(format!(
            "{total} residual blocks and {channels} channels for {ups} upsamplings"
        )));
    }
    let size = HifiGanSize {
        inputs,
        channels,
        upsamples: (0..ups).map(upsample).collect::<Result<_, LoadError>>()?,
        blocks: (0..blocks).map(block).collect::<Result<_, LoadError>>()?,
        double,
        condition,
    };
    let sane = |(kernel, dilations): &(usize, Vec<usize>)| {
        kernel % 2 == 1 && dilations.iter().all(|d| (1..=1024).contains(d))
    };
    match size.blocks.iter().all(sane) && size.hop() <= 1 << 14 {
        true => Ok(size),
        false => Err(find.wrong(format!("a vocoder of {size:?}"))),
    }
}

/// What only the nodes of an ONNX graph say: steps and dilations of convolutions by module.
#[derive(Default)]
struct Geometry {
    strides: HashMap<String, usize>,
    dilations: HashMap<String, usize>,
}

impl Geometry {
    fn of(weights: &Named) -> Geometry {
        let mut geometry = Geometry::default();
        for node in weights.onnx().map_or(&[][..], |graph| &graph.nodes) {
            let Some(module) = module(node).filter(|_| node.op.starts_with("Conv")) else {
                continue;
            };
            let first = |name| {
                ints(node, name)
                    .first()
                    .and_then(|&n| usize::try_from(n).ok())
            };
            if let Some(stride) = first("strides") {
                geometry.strides.insert(module.clone(), stride);
            }
            if let Some(dilation) = first("dilations") {
                geometry.dilations.insert(module, dilation);
            }
        }
        geometry
    }

    fn dilation(&self, module: &str) -> usize {
        self.dilations.get(module).copied().unwrap_or(1)
    }
}
