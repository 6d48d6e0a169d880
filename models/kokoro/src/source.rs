//! The vocoder's source: harmonics of the pitch where there is one, noise everywhere
//! (Wang et al. 2019, <https://arxiv.org/abs/1904.12088>). On the CPU, where its phases keep their
//! precision and its noise comes in torch's order.

use audiocpp::{
    audio::Error,
    nn::IstftHead,
    sampling::TorchRandom,
    weights::{LoadError, Weights},
};

use crate::size::GeneratorSize;

/// Samples a second, of the source and of the whole model.
pub const RATE: u32 = 24_000;
/// A pitch at or below this is none.
const LEAST_PITCH: f32 = 10.0;
/// Loudness of each harmonic.
const SINE: f32 = 0.1;
/// Deviation of the noise where there is a pitch; without one it is a third of a harmonic.
const NOISE: f32 = 0.003;

/// Makes the source from a pitch.
pub struct Source {
    /// How loud each harmonic is in the mixture.
    weights: Vec<f32>,
    bias: f32,
    /// Samples for each step of the pitch.
    hop: usize,
    head: IstftHead,
    threads: usize,
}

impl Source {
    /// Reads `m_source.l_linear`; `head` is the transform of the vocoder. The source is made on
    /// `threads` threads.
    ///
    /// # Errors
    /// As [`Weights::host`].
    pub fn load(
        weights: &Weights,
        size: &GeneratorSize,
        head: IstftHead,
        threads: usize,
    ) -> Result<Source, LoadError> {
        let linear = weights.pp("m_source.l_linear");
        Ok(Source {
            weights: linear.host(&[1, size.harmonics], "weight")?.data,
            bias: linear.host(&[1], "bias")?.data[0],
            hop: size.hop(),
            head,
            threads: threads.max(1),
        })
    }

    /// The transform of the vocoder.
    pub fn head(&self) -> &IstftHead {
        &self.head
    }

    /// The spectrum `[steps factor + 1, bins]` of the source for a pitch in Hz; without `random`
    /// there is no noise.
    ///
    /// # Errors
    /// A pitch of too few steps for one transform.
    pub fn spectrum(
        &self,
        pitch: &[f32],
        random: Option<&mut TorchRandom>,
    ) -> Result<Vec<f32>, Error> {
        self.head.analyse(&self.samples(pitch, random))
    }

    /// The source itself.
    pub fn samples(&self, pitch: &[f32], random: Option<&mut TorchRandom>) -> Vec<f32> {
        let length = pitch.len() * self.hop;
        let harmonics = self.weights.len();
        let noise = random.map(|random| {
            // Phases to start with, which do not reach the result: they are added to a sample that
            // the resampling to steps skips.
            random.rand(harmonics);
            // Kept harmonic by harmonic, and such tensors are filled one number at a time.
            let noise = random.randn_each_on(self.threads, harmonics * length);
            // A second noise that nothing reads.
            random.skip_randn(length);
            noise
        });
        let phases: Vec<Vec<f32>> = (0..harmonics).map(|h| self.phases(pitch, h)).collect();
        let mut sum = vec![self.bias; length];
        let each = length.div_ceil(self.threads).max(1);
        std::thread::scope(|scope| {
            let (phases, noise) = (&phases, noise.as_deref());
            let mut parts = sum
                .chunks_mut(each)
                .enumerate()
                .map(|(i, part)| move || self.mix(pitch, phases, noise, i * each, part));
            let own = parts.next();
            parts.for_each(|part| {
                scope.spawn(part);
            });
            own.into_iter().for_each(|mut part| part());
        });
        sum
    }

    /// The samples from `first` on: harmonics and noise, each as loud as it should be.
    fn mix(
        &self,
        pitch: &[f32],
        phases: &[Vec<f32>],
        noise: Option<&[f32]>,
        first: usize,
        sum: &mut [f32],
    ) {
        let length = pitch.len() * self.hop;
        for (h, (weight, phases)) in self.weights.iter().zip(phases).enumerate() {
            let noise = noise.map(|noise| &noise[h * length..(h + 1) * length]);
            for (t, sum) in (first..).zip(&mut *sum) {
                let voiced = pitch[t / self.hop] > LEAST_PITCH;
                let sine = if voiced {
                    self.between(phases, t).sin() * SINE
                } else {
                    0.0
                };
                let loud = if voiced { NOISE } else { SINE / 3.0 };
                let noise = noise.map_or(0.0, |noise| loud * noise[t]);
                *sum += weight * (sine + noise);
            }
        }
        sum.iter_mut().for_each(|x| *x = x.tanh());
    }

    /// Phase of a harmonic at each step of the pitch.
    fn phases(&self, pitch: &[f32], harmonic: usize) -> Vec<f32> {
        let mut turns = 0f64;
        let phase = |f0: &f32| {
            let each = f0 * (harmonic + 1) as f32 / RATE as f32;
            turns += f64::from(each.rem_euclid(1.0));
            turns as f32 * 2.0 * std::f32::consts::PI * self.hop as f32
        };
        pitch.iter().map(phase).collect()
    }

    /// The phase at a sample, on the line between the middles of two steps.
    fn between(&self, phases: &[f32], t: usize) -> f32 {
        let at = ((t as f32 + 0.5) * (1.0 / self.hop as f32) - 0.5).max(0.0);
        let first = (at as usize).min(phases.len() - 1);
        let second = (first + 1).min(phases.len() - 1);
        let part = at - first as f32;
        (1.0 - part) * phases[first] + part * phases[second]
    }
}
