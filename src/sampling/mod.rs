//! Choosing tokens from logits, and random numbers as torch draws them.

pub mod processors;
pub mod random;

pub use processors::{Processors, argmax, log_prob, log_softmax, softmax};
pub use random::TorchRandom;

/// Draws token ids from logits: greedily at temperature 0, else at random from a seed.
#[derive(Clone, Debug)]
pub struct Sampler {
    processors: Processors,
    random: TorchRandom,
}

impl Sampler {
    /// A sampler that gives the same tokens for the same logits and seed, those that torch on
    /// the CPU gives after `torch.manual_seed(seed)`.
    pub fn new(processors: Processors, seed: u64) -> Self {
        Sampler {
            processors,
            random: TorchRandom::new(seed),
        }
    }

    /// Changes `logits` `[vocabulary]` by the processors and chooses an id; None when no id is
    /// possible (empty, or all -inf or NaN). `previous` are the ids so far, for the repetition
    /// penalty.
    pub fn sample(&mut self, logits: &mut [f32], previous: &[u32]) -> Option<u32> {
        self.processors.apply(logits, previous);
        if self.processors.is_greedy() {
            return argmax(logits);
        }
        self.random.multinomial(&softmax(logits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_best_and_random_follows_torch() {
        let logits = [1.0, 3.0, 2.0, f32::NEG_INFINITY];
        let mut greedy = Sampler::new(Processors::greedy(), 0);
        assert_eq!(greedy.sample(&mut logits.clone(), &[]), Some(1));
        // torch.manual_seed(0); torch.multinomial(tensor([.1, .2, .3, .4]), 1), 21 times.
        let mut sampler = Sampler::new(Processors::default(), 0);
        let drawn: Vec<u32> = (0..21)
            .filter_map(|_| sampler.sample(&mut [0.1f32, 0.2, 0.3, 0.4].map(f32::ln), &[]))
            .collect();
        assert_eq!(
            drawn,
            [
                2, 2, 3, 3, 1, 2, 0, 1, 1, 3, 1, 3, 3, 3, 2, 1, 1, 0, 2, 3, 3
            ]
        );
    }

    #[test]
    fn nothing_possible_is_none() {
        for options in [Processors::greedy(), Processors::default()] {
            let mut sampler = Sampler::new(options, 1);
            assert_eq!(sampler.sample(&mut [], &[]), None);
            assert_eq!(sampler.sample(&mut [f32::NEG_INFINITY; 3], &[]), None);
            assert_eq!(sampler.sample(&mut [f32::NAN; 3], &[]), None);
        }
    }

    #[test]
    fn a_low_temperature_is_nearly_greedy() {
        let mut sampler = Sampler::new(
            Processors {
                temperature: 0.01,
                ..Processors::default()
            },
            5,
        );
        for _ in 0..50 {
            assert_eq!(sampler.sample(&mut [1.0, 2.0, 1.5], &[]), Some(1));
        }
    }
}
