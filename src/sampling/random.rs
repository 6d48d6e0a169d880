//! Random numbers as torch's CPU generator draws them.

use rand_mt::Mt;
use std::f64::consts::TAU;

/// Numbers that a thread makes at a time.
const DRAWN: usize = 1 << 15;

/// Below this length torch draws normal numbers one by one, from it on in blocks of 16.
const BLOCK: usize = 16;

/// The stream of numbers that follows `torch.manual_seed` on the CPU: a Mersenne Twister with
/// torch's ways of making uniform, normal and exponential numbers of it.
///
/// Uniform numbers are equal bit for bit. Normal ones agree to about 1e-6: torch's vectorised
/// logarithm and cosine round differently from machine to machine.
#[derive(Clone, Debug)]
pub struct TorchRandom {
    engine: Mt,
    /// The second number of the last pair that was drawn one by one.
    spare_normal: Option<f64>,
}

impl TorchRandom {
    /// The stream of a seed; torch uses its lower 32 bits.
    pub fn new(seed: u64) -> Self {
        TorchRandom {
            engine: Mt::new(seed as u32),
            spare_normal: None,
        }
    }

    fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.engine.next_u32());
        high << 32 | u64::from(self.engine.next_u32())
    }

    /// One number of `torch.rand`: 24 random bits in `0..1`.
    pub fn uniform(&mut self) -> f32 {
        (self.engine.next_u32() & 0xff_ffff) as f32 / (1 << 24) as f32
    }

    /// One number of `torch.rand(dtype=float64)`: 53 random bits in `0..1`.
    pub fn uniform_f64(&mut self) -> f64 {
        (self.next_u64() & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64
    }

    /// One number of `torch.randint(limit)`; 0 for a limit of 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        let drawn = self.engine.next_u32();
        drawn.checked_rem(limit).unwrap_or(0)
    }

    /// `torch.rand(n)`.
    pub fn rand(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.uniform()).collect()
    }

    /// `torch.randn(n)`, also for a tensor of any shape with `n` elements.
    pub fn randn(&mut self, n: usize) -> Vec<f32> {
        let mut values = vec![0.0; n];
        self.fill_normal(&mut values);
        values
    }

    /// `n` numbers as `tensor.normal_()` gives them, in the order of its memory, to a tensor whose
    /// memory is not in the order of its axes (as `torch.randn_like` of a transposed one).
    pub fn randn_each(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next_normal() as f32).collect()
    }

    /// The same numbers, made on `threads` threads.
    pub fn randn_each_on(&mut self, threads: usize, n: usize) -> Vec<f32> {
        let mut values = Vec::with_capacity(n);
        values.extend(self.spare_normal.take_if(|_| n > 0).map(|x| x as f32));
        let mut uniform = Vec::new();
        // The stream is one after the other; what is made of it is not.
        while n - values.len() >= 2 {
            let count = (n - values.len()).min(DRAWN * threads) & !1;
            uniform.clear();
            uniform.extend((0..count).map(|_| self.uniform_f64()));
            let first = values.len();
            values.resize(first + count, 0.0);
            let each = count.div_ceil(threads.max(1)).next_multiple_of(2);
            let parts = values[first..].chunks_mut(each).zip(uniform.chunks(each));
            std::thread::scope(|scope| {
                let mut parts = parts.map(|(values, uniform)| {
                    move || {
                        for (values, uniform) in
                            values.chunks_exact_mut(2).zip(uniform.chunks_exact(2))
                        {
                            let pair = normal_pair(uniform[0], uniform[1]);
                            values.copy_from_slice(&pair.map(|x| x as f32));
                        }
                    }
                });
                let own = parts.next();
                parts.for_each(|part| {
                    scope.spawn(part);
                });
                own.into_iter().for_each(|mut part| part());
            });
        }
        values.extend((values.len()..n).map(|_| self.next_normal() as f32));
        values
    }

    /// Passes over the numbers that `torch.randn(n)` would be made of.
    pub fn skip_randn(&mut self, n: usize) {
        if n < BLOCK {
            for _ in 0..n {
                self.next_normal();
            }
            return;
        }
        let again = if n.is_multiple_of(BLOCK) { 0 } else { BLOCK };
        for _ in 0..n + again {
            self.engine.next_u32();
        }
    }

    /// Overwrites `values` as `tensor.normal_()` does for a contiguous tensor.
    pub fn fill_normal(&mut self, values: &mut [f32]) {
        if values.len() < BLOCK {
            values.fill_with(|| self.next_normal() as f32);
            return;
        }
        values.fill_with(|| self.uniform());
        for block in values.chunks_exact_mut(BLOCK) {
            box_muller(block);
        }
        if !values.len().is_multiple_of(BLOCK) {
            // The last whole block is drawn anew, over the end of the one before.
            let tail = values.len() - BLOCK;
            let last = &mut values[tail..];
            last.fill_with(|| self.uniform());
            box_muller(last);
        }
    }

    /// One normal number by itself; pairs are made, the second waits for the next call.
    fn next_normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        let [value, spare] = normal_pair(self.uniform_f64(), self.uniform_f64());
        self.spare_normal = Some(spare);
        value
    }

    /// One number of `tensor.exponential_()`, mean 1.
    pub fn exponential(&mut self) -> f32 {
        -(-self.uniform_f64()).ln_1p() as f32
    }

    /// `torch.multinomial(weights, 1)`: an index with probability in proportion to its weight;
    /// None when no weight is positive.
    ///
    /// Each weight races with an exponential clock; the first to ring wins.
    pub fn multinomial(&mut self, weights: &[f32]) -> Option<u32> {
        let mut best = None;
        for (index, weight) in weights.iter().enumerate() {
            let score = weight / self.exponential();
            if *weight > 0.0 && best.is_none_or(|(_, least)| score > least) {
                best = Some((index as u32, score));
            }
        }
        best.map(|(index, _)| index)
    }
}

/// Two normal numbers of two in `0..1` (Box and Muller 1958).
fn normal_pair(angle: f64, radius: f64) -> [f64; 2] {
    let angle = TAU * angle;
    let radius = (-2.0 * (-radius).ln_1p()).sqrt();
    [radius * angle.cos(), radius * angle.sin()]
}

/// Turns 16 uniform numbers into normal ones: the first half gives the radii, the second the
/// angles.
fn box_muller(block: &mut [f32]) {
    let (radii, angles) = block.split_at_mut(BLOCK / 2);
    for (first, second) in radii.iter_mut().zip(angles) {
        let radius = (-2.0 * (1.0 - *first).ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * *second).sin_cos();
        *first = radius * cos;
        *second = radius * sin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f32], torch: &[f32]) {
        assert_eq!(found.len(), torch.len());
        for (found, torch) in found.iter().zip(torch) {
            assert!((found - torch).abs() < 2e-6, "{found} for {torch}");
        }
    }

    #[test]
    fn uniform_numbers_are_torchs() {
        let mut random = TorchRandom::new(0);
        assert_eq!(random.rand(3), [0.496_256_6, 0.768_221_8, 0.088_477_43]);
        // Only 32 bits of the seed count.
        let mut random = TorchRandom::new((1 << 40) + 5);
        assert_eq!(random.rand(2), [0.830_251_9, 0.126_110_91]);
        let mut random = TorchRandom::new(0);
        assert_eq!(random.uniform_f64(), 0.970_053_001_806_553_1);
        let mut random = TorchRandom::new(0);
        let below: Vec<u32> = (0..5).map(|_| random.below(1000)).collect();
        assert_eq!(below, [44, 239, 933, 760, 963]);
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn few_normal_numbers_come_in_pairs() {
        near(
            &TorchRandom::new(0).randn(5),
            &[
                1.540_996_1,
                -0.293_428_9,
                -2.178_789_4,
                0.568_431_26,
                -1.084_522_4,
            ],
        );
    }

    #[test]
    fn a_transposed_tensor_is_filled_one_by_one() {
        let mut each = TorchRandom::new(3);
        let mut few = TorchRandom::new(3);
        let wanted: Vec<f32> = (0..4).flat_map(|_| few.randn(10)).collect();
        assert_eq!(each.randn_each(40), wanted);
        for (threads, n) in [(1, 0), (1, 7), (2, 40), (3, 200_001)] {
            let [mut one, mut many] = [(); 2].map(|()| TorchRandom::new(n as u64));
            for _ in 0..3 {
                assert!(one.randn_each(n) == many.randn_each_on(threads, n), "{n}");
            }
            assert_eq!(one.randn(19), many.randn(19));
        }
    }

    #[test]
    fn numbers_can_be_passed_over() {
        for n in [3, 16, 35, 160] {
            let [mut drawn, mut passed] = [(); 2].map(|()| TorchRandom::new(7));
            drawn.randn(n);
            passed.skip_randn(n);
            assert_eq!(drawn.randn(20), passed.randn(20), "{n}");
        }
    }

    #[test]
    fn many_normal_numbers_come_in_blocks() {
        let sixteen = TorchRandom::new(0).randn(16);
        near(
            &sixteen[..4],
            &[-1.125_839_8, -1.152_360_2, -0.250_578_58, -0.433_878_8],
        );
        near(&sixteen[14..], &[1.116_777_2, -0.247_278_15]);
        // 18 numbers: the last 16 are drawn anew.
        near(
            &TorchRandom::new(0).randn(18)[..5],
            &[
                -1.125_839_8,
                -1.152_360_2,
                0.566_650_6,
                0.793_508_35,
                0.598_839_46,
            ],
        );
        near(&TorchRandom::new(0).randn(18)[17..], &[1.259_009_2]);
        near(
            &TorchRandom::new(0).randn(35)[32..],
            &[1.203_223_7, 0.084_534_7, -1.200_139_4],
        );
    }

    #[test]
    fn the_spare_number_survives_other_draws() {
        let mut random = TorchRandom::new(42);
        near(&random.randn(3), &[0.336_690_37, 0.128_809_4, 0.234_462_37]);
        near(&random.randn(20)[..2], &[1.787_789_3, -0.478_045_25]);
        assert_eq!(random.rand(2), [0.789_029_8, 0.281_413_73]);
        near(&random.randn(2), &[0.230_333_03, -0.091_509_22]);
    }

    #[test]
    fn exponential_and_multinomial() {
        let mut random = TorchRandom::new(0);
        let drawn: Vec<f32> = (0..4).map(|_| random.exponential()).collect();
        near(
            &drawn,
            &[3.508_326_3, 1.230_384_7, 0.615_044_1, 2.535_118_6],
        );
        assert_eq!(random.multinomial(&[0.0, f32::NAN, 0.0]), None);
        assert_eq!(random.multinomial(&[0.0, 0.5, 0.0]), Some(1));
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_deviation_one() {
        let values = TorchRandom::new(9).randn(100_003);
        let n = values.len() as f64;
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let variance = values
            .iter()
            .map(|v| (f64::from(*v) - mean).powi(2))
            .sum::<f64>()
            / n;
        assert!(
            mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02,
            "{mean} {variance}"
        );
        assert!(values.iter().all(|value| value.is_finite()));
    }
}
