//! Weights in host memory, for the few transforms that models need while loading.

use super::element_count;

/// Row-major f32 values with a shape in the reader's order.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// `shape`'s product of values.
    pub data: Vec<f32>,
}

impl HostTensor {
    /// `data` seen as `shape`.
    ///
    /// # Panics
    /// If their sizes differ, which is a mistake in the model's code.
    pub fn new(shape: &[usize], data: Vec<f32>) -> Self {
        assert_eq!(element_count(shape), Some(data.len()), "shape {shape:?}");
        HostTensor {
            shape: shape.to_vec(),
            data,
        }
    }

    /// All zeros.
    pub fn zeros(shape: &[usize]) -> Self {
        HostTensor::new(shape, vec![0.0; shape.iter().product()])
    }

    /// The same values under another shape.
    pub fn reshape(self, shape: &[usize]) -> Self {
        HostTensor::new(shape, self.data)
    }

    /// Axis `order[i]` becomes axis `i`.
    pub fn permute(&self, order: &[usize]) -> Self {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(
            sorted.into_iter().eq(0..self.shape.len()),
            "order {order:?}"
        );
        let mut steps = vec![1; self.shape.len()];
        for axis in (1..self.shape.len()).rev() {
            steps[axis - 1] = steps[axis] * self.shape[axis];
        }
        let shape: Vec<usize> = order.iter().map(|&a| self.shape[a]).collect();
        let steps: Vec<usize> = order.iter().map(|&a| steps[a]).collect();
        let mut data = Vec::with_capacity(self.data.len());
        let mut at = vec![0; shape.len()];
        for _ in 0..self.data.len() {
            data.push(self.data[at.iter().zip(&steps).map(|(i, s)| i * s).sum::<usize>()]);
            for axis in (0..at.len()).rev() {
                at[axis] += 1;
                if at[axis] < shape[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        HostTensor { shape, data }
    }

    /// Matrix with rows and columns exchanged.
    pub fn transpose(&self) -> Self {
        self.permute(&[1, 0])
    }

    /// Indices `range` of the first axis.
    pub fn rows(&self, range: std::ops::Range<usize>) -> Self {
        let width: usize = self.shape[1..].iter().product();
        let mut shape = self.shape.clone();
        shape[0] = range.len();
        HostTensor {
            shape,
            data: self.data[range.start * width..range.end * width].to_vec(),
        }
    }

    /// As many rows of zeros below as make it `rows` rows.
    pub fn padded(mut self, rows: usize) -> Self {
        let width: usize = self.shape[1..].iter().product();
        self.shape[0] = self.shape[0].max(rows);
        self.data.resize(self.shape[0] * width, 0.0);
        self
    }

    /// Tensors end to end along the first axis; the other axes must agree.
    pub fn concat(parts: &[HostTensor]) -> Self {
        let mut shape = parts[0].shape.clone();
        assert!(
            parts.iter().all(|p| p.shape[1..] == shape[1..]),
            "shapes differ"
        );
        shape[0] = parts.iter().map(|p| p.shape[0]).sum();
        HostTensor {
            shape,
            data: parts.iter().flat_map(|p| p.data.iter().copied()).collect(),
        }
    }

    /// PyTorch's convolution kernel `[out, in, taps]` as the matrix `[out, taps * in]` that a
    /// convolution by one product wants, taps outermost.
    pub fn conv_matrix(&self) -> Self {
        let [out, input, taps] = self.shape[..] else {
            panic!("a 1-d convolution kernel has 3 axes, not {:?}", self.shape);
        };
        self.permute(&[0, 2, 1]).reshape(&[out, taps * input])
    }

    /// PyTorch's kernel of a convolution over a plane, `[out, in, down, across]`, as the matrix
    /// `[out, down * across * in]`, taps outermost.
    ///
    /// # Panics
    /// If it has another number of axes, which is a mistake in the model's code.
    pub fn conv2d_matrix(&self) -> Self {
        let [out, input, down, across] = self.shape[..] else {
            panic!("a 2-d convolution kernel has 4 axes, not {:?}", self.shape);
        };
        self.permute(&[0, 2, 3, 1])
            .reshape(&[out, down * across * input])
    }

    /// Weight normalisation undone: direction `self` and length `gain` (one a first-axis index)
    /// give `gain * self / |self|`, the norm over all axes but the first.
    pub fn weight_norm(mut self, gain: &HostTensor) -> Self {
        assert_eq!(gain.data.len(), self.shape[0], "one gain a row");
        let width = self.data.len() / self.shape[0].max(1);
        for (row, gain) in self.data.chunks_mut(width.max(1)).zip(&gain.data) {
            let norm = row
                .iter()
                .map(|v| f64::from(*v).powi(2))
                .sum::<f64>()
                .sqrt();
            let scale = (f64::from(*gain) / norm) as f32;
            row.iter_mut().for_each(|v| *v *= scale);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(shape: &[usize]) -> HostTensor {
        let n = shape.iter().product::<usize>();
        HostTensor::new(shape, (0..n).map(|i| i as f32).collect())
    }

    #[test]
    fn axes_move() {
        let t = counted(&[2, 3]).transpose();
        assert_eq!(t, HostTensor::new(&[3, 2], vec![0., 3., 1., 4., 2., 5.]));
        // [out 1, in 2, taps 3] -> taps outermost.
        let conv = counted(&[1, 2, 3]).conv_matrix();
        assert_eq!(conv, HostTensor::new(&[1, 6], vec![0., 3., 1., 4., 2., 5.]));
    }

    #[test]
    fn rows_split_and_join() {
        let t = counted(&[4, 2]);
        assert_eq!(t.rows(1..3).data, [2., 3., 4., 5.]);
        assert_eq!(HostTensor::concat(&[t.rows(0..1), t.rows(1..4)]), t);
    }

    #[test]
    fn weight_norm_gives_rows_their_gain() {
        let v = HostTensor::new(&[2, 1, 2], vec![3., 4., 0., 2.]);
        let g = HostTensor::new(&[2, 1, 1], vec![10., 1.]);
        assert_eq!(v.weight_norm(&g).data, [6., 8., 0., 1.]);
    }
}
