//! Telling silence and steady noise from anything that could be speech, by level alone.

/// Length of a level measurement in seconds.
const STEP: f64 = 0.03;
/// Nothing louder than this is silence, whatever its shape.
const SILENT_DB: f32 = -70.0;
/// Below this, sound whose level hardly changes is a noise floor; speech rises and falls.
const QUIET_DB: f32 = -45.0;
/// Largest distance of a noise floor's loudest moment from its median.
const STEADY_DB: f32 = 6.0;

/// Whether mono `samples` at `rate` can hold no speech.
pub fn is_silent(samples: &[f32], rate: u32) -> bool {
    let step = ((f64::from(rate) * STEP) as usize).max(1);
    let mut levels: Vec<f32> = samples
        .chunks(step)
        .filter(|chunk| chunk.len() * 2 > step)
        .map(|chunk| {
            let mean = chunk.iter().sum::<f32>() / chunk.len() as f32;
            let power = chunk.iter().map(|s| (s - mean).powi(2)).sum::<f32>() / chunk.len() as f32;
            10.0 * power.max(1e-12).log10()
        })
        .collect();
    levels.sort_by(f32::total_cmp);
    let (Some(&loudest), Some(&median)) = (levels.last(), levels.get(levels.len() / 2)) else {
        return true;
    };
    loudest < SILENT_DB || (loudest < QUIET_DB && loudest - median < STEADY_DB)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(amplitude: f32) -> Vec<f32> {
        let mut state = 1u32;
        (0..16_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state as f32 / u32::MAX as f32 * 2.0 - 1.0) * amplitude
            })
            .collect()
    }

    #[test]
    fn silence_and_noise_floors() {
        assert!(is_silent(&[0.0; 16_000], 16_000));
        assert!(
            is_silent(&[0.25; 16_000], 16_000),
            "a constant offset is no sound"
        );
        assert!(is_silent(&noise(0.001), 16_000), "noise at -65 dB");
        assert!(is_silent(&noise(0.003), 16_000), "noise at -55 dB");
        assert!(is_silent(&[], 16_000));
    }

    #[test]
    fn anything_that_could_be_speech() {
        assert!(!is_silent(&noise(0.1), 16_000));
        // Quiet, but it comes and goes.
        let mut speech = noise(0.0005);
        let burst = noise(0.004);
        speech[4000..8000].copy_from_slice(&burst[4000..8000]);
        assert!(!is_silent(&speech, 16_000));
    }
}
