//! Short vectors of f32 in the widths that processors have, for code written once and compiled
//! for each of them.

/// A vector of `LANES` values.
///
/// # Safety
/// Every method must be called only where the processor has the instructions of the type; the
/// addresses must be valid for `LANES` values and need no alignment.
pub(super) trait Vector: Copy {
    const LANES: usize;
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    /// `LANES` signed bytes.
    unsafe fn load_i8(from: *const i8) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// self * factor + more.
    unsafe fn fma(self, factor: Self, more: Self) -> Self;
}

/// The instruction sets that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Level {
    /// Those that this processor has, the best first.
    pub fn available() -> impl Iterator<Item = Level> {
        let all = [
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512, is_x86_feature_detected!("avx512f")),
            #[cfg(target_arch = "x86_64")]
            (
                Level::Avx2,
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            ),
            (Level::Plain, true),
        ];
        all.into_iter().filter(|level| level.1).map(|level| level.0)
    }

    /// The best that this processor has.
    pub fn best() -> Level {
        Level::available().next().unwrap_or(Level::Plain)
    }
}

macro_rules! x86_vector {
    ($name:ident, $inner:ty, $lanes:literal, $set1:ident, $load:ident, $store:ident, $add:ident,
     $sub:ident, $mul:ident, $max:ident, $fma:ident, $bytes:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[derive(Clone, Copy)]
        pub(super) struct $name($inner);

        // SAFETY (all methods): by the trait's terms.
        #[cfg(target_arch = "x86_64")]
        impl Vector for $name {
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn splat(value: f32) -> Self {
                unsafe { $name($set1(value)) }
            }
            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                unsafe { $name($load(from)) }
            }
            #[inline(always)]
            unsafe fn load_i8(from: *const i8) -> Self {
                unsafe { $name($bytes(from)) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                unsafe { $name($add(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: Self) -> Self {
                unsafe { $name($sub(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                unsafe { $name($mul(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn max(self, other: Self) -> Self {
                unsafe { $name($max(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn fma(self, factor: Self, more: Self) -> Self {
                unsafe { $name($fma(self.0, factor.0, more.0)) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// # Safety
/// As the methods of [`Vector`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn sixteen_bytes(from: *const i8) -> __m512 {
    // SAFETY: by the caller's promise.
    let bytes = unsafe { _mm_loadu_si128(from.cast()) };
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
}

/// # Safety
/// As the methods of [`Vector`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn eight_bytes(from: *const i8) -> __m256 {
    // SAFETY: by the caller's promise.
    let bytes = unsafe { _mm_loadl_epi64(from.cast()) };
    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
}

x86_vector!(
    Avx512,
    __m512,
    16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_sub_ps,
    _mm512_mul_ps,
    _mm512_max_ps,
    _mm512_fmadd_ps,
    sixteen_bytes
);
x86_vector!(
    Avx2,
    __m256,
    8,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_sub_ps,
    _mm256_mul_ps,
    _mm256_max_ps,
    _mm256_fmadd_ps,
    eight_bytes
);

/// Four values in plain Rust, which compilers turn into the vectors of any processor.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 4]);

impl Plain {
    #[inline(always)]
    fn each(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Plain(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

// SAFETY (all methods): by the trait's terms.
impl Vector for Plain {
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Plain([value; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Plain(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> Self {
        Plain(unsafe { from.cast::<[i8; 4]>().read() }.map(f32::from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.each(other, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.each(other, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.each(other, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.each(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn fma(self, factor: Self, more: Self) -> Self {
        if cfg!(target_arch = "aarch64") {
            return Plain(std::array::from_fn(|i| {
                self.0[i].mul_add(factor.0[i], more.0[i])
            }));
        }
        // Not `mul_add`: without the instruction that is a call of a function.
        self.each(factor, |a, b| a * b).each(more, |a, b| a + b)
    }
}
