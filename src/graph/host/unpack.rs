//! Weights of a panel from the form in which they are kept to the one that products read.

#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, Avx512};
use super::{
    kernels::{PANEL, Scheme},
    vector::{Level, Plain, Vector},
};

/// Weights of a panel as they are kept, `[taps][inputs][PANEL]`.
#[derive(Clone, Copy)]
pub(super) enum Panel<'a> {
    Values(&'a [f32]),
    /// Whole numbers, what is added to those of each output, and the factors of the sums.
    Numbers(&'a [i8], &'a [f32]),
}

impl Panel<'_> {
    fn len(&self) -> usize {
        match self {
            Panel::Values(values) => values.len(),
            Panel::Numbers(numbers, _) => numbers.len(),
        }
    }
}

/// Most taps of a group.
const MOST_TAPS: usize = 7;

/// Addresses for the loops: sizes were checked.
#[derive(Clone, Copy)]
struct Work {
    powers: *const f32,
    /// Values in a row of powers, and rows of them.
    taps: usize,
    points: usize,
    values: *const f32,
    numbers: *const i8,
    lines: *const f32,
    /// Values of one tap.
    each: usize,
    to: *mut f32,
    step: usize,
}

/// A panel (of fewer taps than the scheme's: with zeros behind them) to its values at the points:
/// point `p` to `to[p * step..]`.
pub(super) fn transform(scheme: &Scheme, inputs: usize, panel: Panel, to: &mut [f32], step: usize) {
    let (taps, each) = (scheme.points + 1 - scheme.outputs, inputs * PANEL);
    let here = panel.len() / each;
    assert!((1..=taps.min(MOST_TAPS)).contains(&here) && panel.len() == here * each);
    assert!(to.len() >= (scheme.points - 1) * step + each);
    assert!(scheme.kernel.len() == scheme.points * taps);
    let (values, numbers, lines) = match panel {
        Panel::Values(values) => (values.as_ptr(), std::ptr::null(), std::ptr::null()),
        Panel::Numbers(numbers, lines) => {
            assert!(lines.len() >= 2 * PANEL);
            (std::ptr::null(), numbers.as_ptr(), lines.as_ptr())
        }
    };
    let work = Work {
        powers: scheme.kernel.as_ptr(),
        taps,
        points: scheme.points,
        values,
        numbers,
        lines,
        each,
        to: to.as_mut_ptr(),
        step,
    };
    let level = scheme.level;
    match here {
        1 => evaluate::<1>(level, work),
        2 => evaluate::<2>(level, work),
        3 => evaluate::<3>(level, work),
        4 => evaluate::<4>(level, work),
        5 => evaluate::<5>(level, work),
        6 => evaluate::<6>(level, work),
        _ => evaluate::<7>(level, work),
    }
}

/// The values of a panel as they are.
pub(super) fn values(scheme: &Scheme, panel: Panel, to: &mut [f32]) {
    assert!(panel.len() == to.len() && to.len().is_multiple_of(PANEL));
    match panel {
        Panel::Values(values) => to.copy_from_slice(values),
        Panel::Numbers(numbers, lines) => {
            assert!(lines.len() >= 2 * PANEL);
            let one = 1.0;
            let work = Work {
                powers: &raw const one,
                taps: 1,
                points: 1,
                values: std::ptr::null(),
                numbers: numbers.as_ptr(),
                lines: lines.as_ptr(),
                each: to.len(),
                to: to.as_mut_ptr(),
                step: 0,
            };
            evaluate::<1>(scheme.level, work);
        }
    }
}

fn evaluate<const T: usize>(level: Level, work: Work) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<const T: usize>(work: Work) {
        // SAFETY: this function has the instructions of the type; the rest by the caller.
        unsafe { evaluate_at::<Avx512, 1, T>(work) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<const T: usize>(work: Work) {
        // SAFETY: as above.
        unsafe { evaluate_at::<Avx2, 2, T>(work) }
    }
    // SAFETY: the callers checked all sizes; the level was found on this processor.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::<T>(work),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::<T>(work),
            Level::Plain => evaluate_at::<Plain, 4, T>(work),
        }
    }
}

/// # Safety
/// The processor has V's instructions, W vectors make a panel; the addresses are good for the
/// sizes.
#[inline(always)]
unsafe fn evaluate_at<V: Vector, const W: usize, const T: usize>(work: Work) {
    for w in 0..W {
        let lane = w * V::LANES;
        // SAFETY: by the caller's promise.
        unsafe {
            if work.values.is_null() {
                let middle = V::load(work.lines.add(lane));
                let scale = V::load(work.lines.add(PANEL + lane));
                points::<V, T>(work, lane, |at| {
                    V::load_i8(work.numbers.add(at)).add(middle).mul(scale)
                });
            } else {
                points::<V, T>(work, lane, |at| V::load(work.values.add(at)));
            }
        }
    }
}

/// # Safety
/// As [`evaluate_at`]; `read` reads a vector of the panel.
#[inline(always)]
unsafe fn points<V: Vector, const T: usize>(work: Work, lane: usize, read: impl Fn(usize) -> V) {
    for c in (lane..work.each).step_by(PANEL) {
        let mut x = [read(c); T];
        for (k, x) in x.iter_mut().enumerate().skip(1) {
            *x = read(k * work.each + c);
        }
        for p in 0..work.points {
            // SAFETY: by the caller's promise.
            unsafe {
                let powers = work.powers.add(p * work.taps);
                let mut sum = x[0].mul(V::splat(*powers));
                for (k, x) in x.iter().enumerate().skip(1) {
                    sum = x.fma(V::splat(*powers.add(k)), sum);
                }
                sum.store(work.to.add(p * work.step + c));
            }
        }
    }
}
