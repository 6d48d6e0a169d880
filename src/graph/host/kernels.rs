//! The inner loops of short convolutions, for each instruction set.

#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, Avx512};
use super::{
    pass::{Pass, RowsMut},
    toom_cook::ToomCook,
    vector::{Level, Plain, Vector},
};

/// Output channels that are computed together.
pub(super) const PANEL: usize = 16;

/// Most pairs of opposite points.
const MOST_PAIRS: usize = 5;
/// Most values that are added to a result.
pub(super) const MOST_SUMMANDS: usize = 4;

/// A [`ToomCook`] scheme in the form that the loops want.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scheme {
    pub points: usize,
    pub outputs: usize,
    pub level: Level,
    /// For each pair `[points]` coefficients of the positive point; before them those of zero,
    /// after them those of infinity.
    input: Vec<f32>,
    /// `[outputs][pairs]`: powers of the positive points.
    output: Vec<f32>,
    /// `[points][taps]`: from taps to their values at the points.
    pub kernel: Vec<f32>,
}

impl Scheme {
    /// For the best instruction set of this processor.
    pub fn new(matrices: &ToomCook) -> Scheme {
        let n = matrices.points;
        let lines = std::iter::once(0)
            .chain((1..n - 1).step_by(2))
            .chain([n - 1]);
        let odd =
            |row: &Vec<f64>| -> Vec<f32> { (1..n - 1).step_by(2).map(|p| row[p] as f32).collect() };
        Scheme {
            points: n,
            outputs: matrices.outputs,
            level: Level::best(),
            input: lines
                .flat_map(|p| matrices.input[p].iter().map(|x| *x as f32))
                .collect(),
            output: matrices.output.iter().flat_map(odd).collect(),
            kernel: matrices
                .kernel
                .iter()
                .flatten()
                .map(|x| *x as f32)
                .collect(),
        }
    }

    /// One point and one output: the product itself.
    pub fn plain() -> Scheme {
        Scheme {
            points: 1,
            outputs: 1,
            level: Level::best(),
            input: vec![1.0],
            output: Vec::new(),
            kernel: vec![1.0],
        }
    }
}

/// Runs a generic function for the scheme's instruction set.
macro_rules! dispatch {
    ($scheme:expr, $function:ident ( $($name:ident : $type:ty),* $(,)? )) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f")]
        unsafe fn avx512($($name: $type),*) {
            // SAFETY: this function has the instructions of the type.
            unsafe { $function::<Avx512, 1, 24, 12, 4>($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2($($name: $type),*) {
            // SAFETY: as above.
            unsafe { $function::<Avx2, 2, 6, 6, 4>($($name),*) }
        }
        // SAFETY: the level was found on this processor.
        unsafe {
            match $scheme.level {
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => avx512($($name),*),
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2($($name),*),
                Level::Plain => $function::<Plain, 4, 2, 2, 2>($($name),*),
            }
        }
    }};
}

/// Rows `row(0)`, `row(1)`, .. of a tile, one value a channel, to their values at the points:
/// point `p` of channel `c` goes to `to[p * step + c]`. The rows go through a leaky rectifier
/// first.
pub(super) fn input<'x>(
    scheme: &Scheme,
    row: impl Fn(usize) -> &'x [f32],
    slope: f32,
    to: &mut [f32],
    step: usize,
) {
    let mut rows: [&[f32]; 2 * MOST_PAIRS + 2] = [&[]; 2 * MOST_PAIRS + 2];
    for (i, slot) in rows.iter_mut().take(scheme.points).enumerate() {
        *slot = row(i);
    }
    let width = rows[0].len();
    assert!(to.len() >= (scheme.points - 1) * step + width && width.is_multiple_of(PANEL));
    assert!(rows[..scheme.points].iter().all(|row| row.len() == width));
    let rows = rows.map(<[f32]>::as_ptr);
    let to = to.as_mut_ptr();
    match scheme.points {
        8 => transform::<8>(scheme, &rows, width, slope, to, step),
        10 => transform::<10>(scheme, &rows, width, slope, to, step),
        _ => transform::<12>(scheme, &rows, width, slope, to, step),
    }
}

type Rows = [*const f32; 2 * MOST_PAIRS + 2];

fn transform<const N: usize>(
    scheme: &Scheme,
    rows: &Rows,
    width: usize,
    slope: f32,
    to: *mut f32,
    step: usize,
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<const N: usize>(
        scheme: &Scheme,
        rows: &Rows,
        width: usize,
        slope: f32,
        to: *mut f32,
        step: usize,
    ) {
        // SAFETY: this function has the instructions of the type; the rest by the caller.
        unsafe { transform_at::<Avx512, N>(scheme, rows, width, slope, to, step) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<const N: usize>(
        scheme: &Scheme,
        rows: &Rows,
        width: usize,
        slope: f32,
        to: *mut f32,
        step: usize,
    ) {
        // SAFETY: as above.
        unsafe { transform_at::<Avx2, N>(scheme, rows, width, slope, to, step) }
    }
    // SAFETY: `input` checked all sizes; the level was found on this processor.
    unsafe {
        match scheme.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::<N>(scheme, rows, width, slope, to, step),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::<N>(scheme, rows, width, slope, to, step),
            Level::Plain => transform_at::<Plain, N>(scheme, rows, width, slope, to, step),
        }
    }
}

/// # Safety
/// The processor has V's instructions; N rows of `width` values; room for N points.
#[inline(always)]
unsafe fn transform_at<V: Vector, const N: usize>(
    scheme: &Scheme,
    rows: &Rows,
    width: usize,
    slope: f32,
    to: *mut f32,
    step: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let leak = V::splat(slope);
        let coefficients = scheme.input.as_ptr();
        for c in (0..width).step_by(V::LANES) {
            let mut x = [V::splat(0.0); N];
            for (x, row) in x.iter_mut().zip(rows) {
                let value = V::load(row.add(c));
                *x = value.max(value.mul(leak));
            }
            let side = |line: usize, first: usize| {
                let b = coefficients.add(line * N);
                let mut sum = x[first].mul(V::splat(*b.add(first)));
                for i in (first + 2..N).step_by(2) {
                    sum = x[i].fma(V::splat(*b.add(i)), sum);
                }
                sum
            };
            side(0, 0).store(to.add(c));
            for pair in 0..(N - 2) / 2 {
                let (even, odd) = (side(1 + pair, 0), side(1 + pair, 1));
                even.add(odd).store(to.add((1 + 2 * pair) * step + c));
                even.sub(odd).store(to.add((2 + 2 * pair) * step + c));
            }
            side(N / 2, 1).store(to.add((N - 1) * step + c));
        }
    }
}

/// For each point the product of `rows` lines of `values` (`line` values apart) with its part of
/// `weight`, `[points][depth][PANEL]` -> `[points][rows][PANEL]`. `rows` is a multiple of 4.
pub(super) fn products(
    scheme: &Scheme,
    values: &[f32],
    line: usize,
    rows: usize,
    weight: &[f32],
    to: &mut [f32],
) {
    let depth = weight.len() / PANEL / scheme.points;
    assert!(rows.is_multiple_of(4) && depth <= line);
    assert!(values.len() >= scheme.points * rows * line);
    assert!(to.len() >= scheme.points * rows * PANEL);
    for p in 0..scheme.points {
        let a = values[p * rows * line..].as_ptr();
        let b = weight[p * depth * PANEL..].as_ptr();
        let out = to[p * rows * PANEL..].as_mut_ptr();
        dispatch!(scheme, product(
            a: *const f32, line: usize, b: *const f32, depth: usize, rows: usize, out: *mut f32,
        ));
    }
}

/// # Safety
/// The processor has V's instructions; `a` holds `rows` lines, `b` `depth` and `out` `rows`
/// panels; W vectors make a panel; `rows` is a multiple of 4.
#[inline(always)]
unsafe fn product<
    V: Vector,
    const W: usize,
    const MANY: usize,
    const SOME: usize,
    const FEW: usize,
>(
    a: *const f32,
    line: usize,
    b: *const f32,
    depth: usize,
    rows: usize,
    out: *mut f32,
) {
    let mut row = 0;
    // SAFETY: by the caller's promise; the rows stay below `rows`.
    unsafe {
        while rows - row >= 24 {
            for _ in 0..24 / MANY {
                panel::<V, W, MANY>(a.add(row * line), line, b, depth, out.add(row * PANEL));
                row += MANY;
            }
        }
        while rows - row >= 12 {
            for _ in 0..12 / SOME {
                panel::<V, W, SOME>(a.add(row * line), line, b, depth, out.add(row * PANEL));
                row += SOME;
            }
        }
        while row < rows {
            panel::<V, W, FEW>(a.add(row * line), line, b, depth, out.add(row * PANEL));
            row += FEW;
        }
    }
}

/// # Safety
/// As [`product`], for R rows.
#[inline(always)]
unsafe fn panel<V: Vector, const W: usize, const R: usize>(
    a: *const f32,
    line: usize,
    b: *const f32,
    depth: usize,
    out: *mut f32,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut sums = [[V::splat(0.0); W]; R];
        for k in 0..depth {
            let mut weight = [V::splat(0.0); W];
            for (w, weight) in weight.iter_mut().enumerate() {
                *weight = V::load(b.add(k * PANEL + w * V::LANES));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let value = V::splat(*a.add(r * line + k));
                for (sum, weight) in sums.iter_mut().zip(weight) {
                    *sum = value.fma(weight, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (w, sum) in sums.iter().enumerate() {
                sum.store(out.add(r * PANEL + w * V::LANES));
            }
        }
    }
}

/// Steps of a result that are computed together: `count`, from `first` on, `apart` from each other.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub first: usize,
    pub apart: usize,
    pub count: usize,
}

impl Steps {
    fn last(self) -> usize {
        self.first + (self.count - 1) * self.apart
    }
}

/// The products of one tile, point `p` at `products[p * step]`, to its `steps` of panel `panel` of
/// `to`.
///
/// # Safety
/// Nothing else touches these steps of this panel.
pub(super) unsafe fn output(
    scheme: &Scheme,
    products: &[f32],
    step: usize,
    pass: &Pass,
    panel: usize,
    steps: Steps,
    to: &RowsMut,
) {
    assert!(products.len() >= (scheme.points - 1) * step + PANEL);
    assert!((1..=scheme.outputs).contains(&steps.count));
    let from = products.as_ptr();
    let channels = panel * PANEL..(panel + 1) * PANEL;
    let bias = pass.bias.map(|bias| bias[channels.clone()].as_ptr());
    let mut plus = [(std::ptr::null(), 0); MOST_SUMMANDS];
    for (slot, rows) in plus.iter_mut().zip(pass.plus) {
        let row = |step| rows.get(step).expect("a row for every step");
        let (first, last) = (&row(steps.first)[channels.clone()], row(steps.last()));
        assert!(last.len() >= channels.end);
        *slot = (first.as_ptr(), steps.apart * rows.line());
    }
    to.at(steps.last(), channels.end - 1);
    let target = (to.at(steps.first, channels.start), steps.apart * to.width());
    let tile = Tile {
        bias,
        count: steps.count,
        target,
        plus: &plus[..pass.plus.len()],
        scale: pass.scale,
    };
    // SAFETY: first and last step were checked, and with them those in between.
    unsafe {
        match scheme.points {
            1 => combine::<0>(scheme, from, step, &tile),
            8 => combine::<3>(scheme, from, step, &tile),
            10 => combine::<4>(scheme, from, step, &tile),
            _ => combine::<5>(scheme, from, step, &tile),
        }
    }
}

/// Where the steps of a tile go, and what is added to them: addresses of the first, and values from
/// step to step.
struct Tile<'p> {
    bias: Option<*const f32>,
    count: usize,
    target: (*mut f32, usize),
    plus: &'p [(*const f32, usize)],
    scale: f32,
}

/// # Safety
/// PAIRS is that of the scheme; every address of the tile is one of a panel.
unsafe fn combine<const PAIRS: usize>(scheme: &Scheme, from: *const f32, step: usize, tile: &Tile) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<const PAIRS: usize>(
        scheme: &Scheme,
        from: *const f32,
        step: usize,
        tile: &Tile,
    ) {
        // SAFETY: this function has the instructions of the type; the rest by the caller.
        unsafe { combine_at::<Avx512, 1, PAIRS>(scheme, from, step, tile) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<const PAIRS: usize>(
        scheme: &Scheme,
        from: *const f32,
        step: usize,
        tile: &Tile,
    ) {
        // SAFETY: as above.
        unsafe { combine_at::<Avx2, 2, PAIRS>(scheme, from, step, tile) }
    }
    // SAFETY: by the caller's promise; the level was found on this processor.
    unsafe {
        match scheme.level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::<PAIRS>(scheme, from, step, tile),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::<PAIRS>(scheme, from, step, tile),
            Level::Plain => combine_at::<Plain, 4, PAIRS>(scheme, from, step, tile),
        }
    }
}

/// # Safety
/// The processor has V's instructions, W vectors make a panel; as [`combine`].
#[inline(always)]
unsafe fn combine_at<V: Vector, const W: usize, const PAIRS: usize>(
    scheme: &Scheme,
    from: *const f32,
    step: usize,
    tile: &Tile,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let scale = V::splat(tile.scale);
        for w in 0..W {
            let c = w * V::LANES;
            let at = |p: usize| V::load(from.add(p * step + c));
            let bias = tile.bias.map_or(V::splat(0.0), |b| V::load(b.add(c)));
            // Sums serve even powers, differences odd ones.
            let pairs: [(V, V); PAIRS] =
                std::array::from_fn(|pair| (at(1 + 2 * pair), at(2 + 2 * pair)));
            let (sums, differences) = (pairs.map(|(a, b)| a.add(b)), pairs.map(|(a, b)| a.sub(b)));
            for j in 0..tile.count {
                let mut y = bias;
                if j == 0 {
                    y = y.add(at(0));
                }
                if j + 1 == scheme.outputs && PAIRS > 0 {
                    y = y.add(at(scheme.points - 1));
                }
                let powers = scheme.output.as_ptr().add(j * PAIRS);
                let side = if j % 2 == 0 { &sums } else { &differences };
                for (pair, side) in side.iter().enumerate() {
                    y = side.fma(V::splat(*powers.add(pair)), y);
                }
                for &(plus, apart) in tile.plus {
                    y = y.add(V::load(plus.add(j * apart + c)));
                }
                y.mul(scale).store(tile.target.0.add(j * tile.target.1 + c));
            }
        }
    }
}
