//! Random shifts, drawn as Python's `random` draws them from the same seed.

use rand_mt::Mt;

/// The generator of `random.seed(seed)`.
pub struct Shifts(Mt);

impl Shifts {
    /// Seeds it.
    pub fn new(seed: u64) -> Shifts {
        // The key is the number's 32-bit digits, lowest first; zero has one digit.
        let digits = [seed as u32, (seed >> 32) as u32];
        let count = if digits[1] == 0 { 1 } else { 2 };
        Shifts(Mt::new_with_key(digits[..count].iter().copied()))
    }

    /// A number from 0 to `most`, both included: `random.randint(0, most)`.
    pub fn up_to(&mut self, most: u32) -> u32 {
        let count = u64::from(most) + 1;
        let bits = 64 - count.leading_zeros();
        loop {
            // More than 32 bits are never needed but for the full range.
            let drawn = match bits {
                33.. => self.0.next_u32(),
                bits => self.0.next_u32() >> (32 - bits),
            };
            if u64::from(drawn) < count {
                return drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        // python -c "import random; random.seed(S); print([random.randint(0, 22050) for _ in range(4)])"
        let draw = |seed| {
            let mut shifts = Shifts::new(seed);
            [0; 4].map(|_| shifts.up_to(22_050))
        };
        assert_eq!(draw(0), SEED_0);
        assert_eq!(draw(1 << 40), SEED_BIG);
    }

    const SEED_0: [u32; 4] = [12_623, 13_781, 1_326, 8_484];
    const SEED_BIG: [u32; 4] = [3_396, 11_574, 21_972, 2_151];
}
