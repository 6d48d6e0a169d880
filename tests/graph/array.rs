//! Arrays of f64 with the plainest possible operations, and seeded numbers to fill them.

use audiocpp::graph::DType;
use half::{bf16, f16};

/// A dense array in the reader's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    pub fn new(shape: &[usize], values: Vec<f64>) -> Array {
        assert_eq!(values.len(), shape.iter().product::<usize>(), "{shape:?}");
        Array {
            shape: shape.to_vec(),
            values,
        }
    }

    /// Each element from its place.
    pub fn from_fn(shape: &[usize], mut value: impl FnMut(&[usize]) -> f64) -> Array {
        let count: usize = shape.iter().product();
        let mut at = vec![0; shape.len()];
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(value(&at));
            for axis in (0..shape.len()).rev() {
                at[axis] += 1;
                if at[axis] < shape[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        Array::new(shape, values)
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The extents, of which there are `N`.
    pub fn dims<const N: usize>(&self) -> [usize; N] {
        self.shape[..].try_into().expect("the number of axes")
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    pub fn values(&self) -> &[f64] {
        &self.values
    }

    pub fn last(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// The rows along the last axis.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(self.last())
    }

    pub fn at(&self, place: &[usize]) -> f64 {
        let offset = place.iter().zip(&self.shape).fold(0, |o, (&i, &n)| {
            assert!(i < n, "{place:?} of {:?}", self.shape);
            o * n + i
        });
        self.values[offset]
    }

    /// The place of an element in storage order.
    pub fn place(&self, mut offset: usize) -> Vec<usize> {
        let mut place = vec![0; self.rank()];
        for axis in (0..self.rank()).rev() {
            place[axis] = offset % self.shape[axis];
            offset /= self.shape[axis];
        }
        place
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Array {
        Array::new(&self.shape, self.values.iter().map(|&v| f(v)).collect())
    }

    /// Each row of the last axis made another row.
    pub fn map_rows(&self, f: impl Fn(&[f64]) -> Vec<f64>) -> Array {
        let values: Vec<f64> = self.rows().flat_map(f).collect();
        let mut shape = self.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = values.len() * *last / self.values.len();
        }
        Array::new(&shape, values)
    }

    pub fn reshape(&self, shape: &[usize]) -> Array {
        Array::new(shape, self.values.clone())
    }

    /// Axis `i` of the result is axis `order[i]` of this.
    pub fn permute(&self, order: &[usize]) -> Array {
        let shape: Vec<usize> = order.iter().map(|&axis| self.shape[axis]).collect();
        Array::from_fn(&shape, |at| {
            let mut from = vec![0; at.len()];
            for (i, &axis) in order.iter().enumerate() {
                from[axis] = at[i];
            }
            self.at(&from)
        })
    }

    pub fn swap(&self, a: usize, b: usize) -> Array {
        let mut order: Vec<usize> = (0..self.rank()).collect();
        order.swap(a, b);
        self.permute(&order)
    }

    pub fn slice(&self, axis: usize, start: usize, len: usize) -> Array {
        let mut shape = self.shape.clone();
        shape[axis] = len;
        Array::from_fn(&shape, |at| {
            let mut at = at.to_vec();
            at[axis] += start;
            self.at(&at)
        })
    }

    pub fn pad(&self, axis: usize, before: usize, after: usize, fill: f64) -> Array {
        let mut shape = self.shape.clone();
        shape[axis] += before + after;
        Array::from_fn(&shape, |at| {
            let mut from = at.to_vec();
            match at[axis].checked_sub(before) {
                Some(i) if i < self.shape[axis] => {
                    from[axis] = i;
                    self.at(&from)
                }
                _ => fill,
            }
        })
    }

    pub fn concat(&self, other: &Array, axis: usize) -> Array {
        let mut shape = self.shape.clone();
        shape[axis] += other.shape[axis];
        Array::from_fn(&shape, |at| {
            let mut from = at.to_vec();
            match at[axis].checked_sub(self.shape[axis]) {
                None => self.at(at),
                Some(i) => {
                    from[axis] = i;
                    other.at(&from)
                }
            }
        })
    }

    /// Repeated along axes of extent one, numpy's way.
    pub fn broadcast(&self, shape: &[usize]) -> Array {
        let ahead = shape.len() - self.rank();
        Array::from_fn(shape, |at| {
            let from: Vec<usize> = (at[ahead..].iter().zip(&self.shape))
                .map(|(&i, &n)| if n == 1 { 0 } else { i })
                .collect();
            self.at(&from)
        })
    }

    /// Element by element with numpy's broadcasting of either side.
    pub fn zip(&self, other: &Array, f: impl Fn(f64, f64) -> f64) -> Array {
        let (a, b) = if self.rank() >= other.rank() && self.values.len() >= other.values.len() {
            (self.clone(), other.broadcast(&self.shape))
        } else {
            (self.broadcast(&other.shape), other.clone())
        };
        let values = a.values.iter().zip(&b.values).map(|(&x, &y)| f(x, y));
        Array::new(&a.shape, values.collect())
    }

    /// The values that a storage type keeps of these.
    pub fn round_to(&self, dtype: DType) -> Array {
        match dtype {
            DType::F32 => self.map(|v| f64::from(v as f32)),
            DType::F16 => self.map(|v| f16::from_f64(v).to_f64()),
            DType::BF16 => self.map(|v| bf16::from_f64(v).to_f64()),
            DType::I32 | DType::I64 => self.map(f64::trunc),
            quantized => {
                let mut values = vec![0.0f32; self.values.len()];
                let bytes = self.bytes(quantized);
                ggml_sys::quantize::dequantize(quantized.id(), &bytes, &mut values).unwrap();
                Array::new(&self.shape, values.into_iter().map(f64::from).collect())
            }
        }
    }

    /// The values as a tensor of this type stores them.
    pub fn bytes(&self, dtype: DType) -> Vec<u8> {
        match dtype {
            DType::I32 => (self.values.iter())
                .flat_map(|&v| (v as i32).to_le_bytes())
                .collect(),
            DType::I64 => (self.values.iter())
                .flat_map(|&v| (v as i64).to_le_bytes())
                .collect(),
            _ => {
                let values: Vec<f32> = self.values.iter().map(|&v| v as f32).collect();
                ggml_sys::quantize::quantize(dtype.id(), &values, self.last()).unwrap()
            }
        }
    }
}

/// Seeded numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// In -1..1.
    pub fn next(&mut self) -> f64 {
        self.bits() as f64 / (1u64 << 63) as f64 - 1.0
    }

    /// In 0..n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An array of numbers in -scale..scale.
    pub fn array(&mut self, shape: &[usize], scale: f64) -> Array {
        Array::from_fn(shape, |_| self.next() * scale)
    }

    /// An array of whole numbers in 0..n.
    pub fn indices(&mut self, count: usize, n: usize) -> Array {
        Array::from_fn(&[count], |_| self.below(n) as f64)
    }
}
