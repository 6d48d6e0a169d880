//! Rotary positions (Su et al. 2021, <https://arxiv.org/abs/2104.09864>).

use ggml_sys as sys;

use super::{DType, Tensor};

impl<'g> Tensor<'g> {
    /// Turns each head `[n, head, width]` by its position i32 `[n]`: of the first half's value `i`
    /// and the second half's, as a point of a plane, by `position * base^(-2 i / width)`.
    pub fn rotary(self, positions: Tensor<'g>, base: f32) -> Tensor<'g> {
        let [n, _, width] = self.dims();
        let fits = self.dtype() == DType::F32
            && positions.dtype() == DType::I32
            && positions.shape() == [n]
            && width.is_multiple_of(2)
            && width <= i32::MAX as usize
            && base.is_finite()
            && base > 0.0;
        if !fits {
            return self.scope.mistake(
                "rotary",
                format!("{self:?} at {positions:?} with base {base}"),
            );
        }
        let (x, at) = (self.packed_rows(), positions.contiguous());
        let mode = sys::GGML_ROPE_TYPE_NEOX as i32;
        // SAFETY: f32 with packed rows, one i32 position for each step, no factors of frequencies.
        self.scope.emit(self.rank(), |ctx| unsafe {
            let (x, at) = (x.ptr.as_ptr(), at.ptr.as_ptr());
            let none = std::ptr::null_mut();
            sys::ggml_rope_ext(
                ctx,
                x,
                at,
                none,
                width as i32,
                mode,
                0,
                base,
                1.0,
                0.0,
                1.0,
                0.0,
                0.0,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{DType, Device, Graph};

    #[test]
    fn halves_turn_as_points_of_planes() {
        let device = Device::cpu(1).unwrap();
        let run = |x: &[f32], positions: [i32; 2]| {
            let mut graph = Graph::build(&device, |g| {
                // The heads lie in wider rows, as those of a packed projection do.
                let x = g.input("x", DType::F32, &[2, 12]).slice(1, 2, 8);
                let at = g.input("at", DType::I32, &[2]);
                g.output("y", x.split_last(2).rotary(at, 100.0));
                Ok(())
            })
            .unwrap();
            graph.write("x", x).unwrap();
            graph.write("at", &positions).unwrap();
            graph.compute().unwrap();
            graph.read::<f32>("y").unwrap()
        };
        let x: Vec<f32> = (0..24).map(|i| (i as f32 * 0.7).sin()).collect();
        let y = run(&x, [0, 7]);
        assert_eq!(y[..8], x[2..10]);
        for head in 0..2 {
            for i in 0..2 {
                let at = |half: usize| head * 4 + 2 * half + i;
                let (a, b) = (x[14 + at(0)], x[14 + at(1)]);
                let (sin, cos) = (7.0 * 100f32.powf(-(i as f32) / 2.0)).sin_cos();
                assert!((y[8 + at(0)] - (a * cos - b * sin)).abs() < 1e-5);
                assert!((y[8 + at(1)] - (a * sin + b * cos)).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn misfits_are_mistakes() {
        let device = Device::cpu(1).unwrap();
        for (width, places) in [(3, 2), (4, 3)] {
            let built = Graph::build(&device, |g| {
                let x = g.input("x", DType::F32, &[2, 1, width]);
                let at = g.input("at", DType::I32, &[places]);
                g.output("y", x.rotary(at, 1e4));
                Ok(())
            });
            assert!(built.is_err(), "{width} {places}");
        }
    }
}
