//! Arithmetic, activations, normalisations, reductions, products and look-ups.

use std::ops::{Add, Div, Mul, Neg, Sub};

use ggml_sys as sys;

use super::{
    DType, DeviceTensor, Scope, Tensor,
    host::{Factors, GatedTanh, Gelu, Product, SigmoidGlu},
    shape::Shape,
};

type Binary = unsafe extern "C" fn(
    *mut sys::ggml_context,
    *mut sys::ggml_tensor,
    *mut sys::ggml_tensor,
) -> *mut sys::ggml_tensor;

fn binary<'g>(op: &'static str, a: Tensor<'g>, b: Tensor<'g>, make: Binary) -> Tensor<'g> {
    if !a.extents().takes(&b.extents()) || !a.dtype().is_float() || !b.dtype().is_float() {
        return a.scope.mistake(op, format!("{a:?} and {b:?}"));
    }
    let (a, b) = match a.dtype() == b.dtype() {
        true => (a, b),
        false => (a.cast(DType::F32), b.cast(DType::F32)),
    };
    let (a, b) = (a.packed_rows(), b.packed_rows());
    // SAFETY: the same float type with packed rows, and `b` broadcasts to `a`.
    a.scope.emit(a.rank(), |ctx| unsafe {
        make(ctx, a.ptr.as_ptr(), b.ptr.as_ptr())
    })
}

/// For an operator that may exchange its sides, the larger one first, as ggml wants.
fn larger_first<'g>(a: Tensor<'g>, b: Tensor<'g>) -> (Tensor<'g>, Tensor<'g>) {
    if a.extents().takes(&b.extents()) {
        (a, b)
    } else {
        (b, a)
    }
}

impl<'g> Add for Tensor<'g> {
    type Output = Tensor<'g>;
    fn add(self, other: Tensor<'g>) -> Tensor<'g> {
        let (a, b) = larger_first(self, other);
        binary("add", a, b, sys::ggml_add)
    }
}

impl<'g> Mul for Tensor<'g> {
    type Output = Tensor<'g>;
    fn mul(self, other: Tensor<'g>) -> Tensor<'g> {
        let (a, b) = larger_first(self, other);
        binary("mul", a, b, sys::ggml_mul)
    }
}

impl<'g> Sub for Tensor<'g> {
    type Output = Tensor<'g>;
    fn sub(self, other: Tensor<'g>) -> Tensor<'g> {
        if self.extents().takes(&other.extents()) {
            return binary("sub", self, other, sys::ggml_sub);
        }
        -binary("sub", other, self, sys::ggml_sub)
    }
}

impl<'g> Div for Tensor<'g> {
    type Output = Tensor<'g>;
    fn div(self, other: Tensor<'g>) -> Tensor<'g> {
        binary("div", self, other, sys::ggml_div)
    }
}

impl<'g> Neg for Tensor<'g> {
    type Output = Tensor<'g>;
    fn neg(self) -> Tensor<'g> {
        self.scale(-1.0)
    }
}

impl<'g> Add<f32> for Tensor<'g> {
    type Output = Tensor<'g>;
    fn add(self, value: f32) -> Tensor<'g> {
        self.scale_add(1.0, value)
    }
}

impl<'g> Mul<f32> for Tensor<'g> {
    type Output = Tensor<'g>;
    fn mul(self, factor: f32) -> Tensor<'g> {
        self.scale(factor)
    }
}

/// A stored tensor beside a graph tensor stands for itself: `x + &bias`, `x * &gain`.
impl<'g> Add<&DeviceTensor> for Tensor<'g> {
    type Output = Tensor<'g>;
    fn add(self, stored: &DeviceTensor) -> Tensor<'g> {
        self + self.scope.stored(stored)
    }
}

impl<'g> Mul<&DeviceTensor> for Tensor<'g> {
    type Output = Tensor<'g>;
    fn mul(self, stored: &DeviceTensor) -> Tensor<'g> {
        self * self.scope.stored(stored)
    }
}

macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident = $ggml:ident;)*) => {
        impl<'g> Tensor<'g> {
            $($(#[$doc])* pub fn $name(self) -> Tensor<'g> { self.f32_unary(stringify!($name), sys::$ggml) })*
        }
    };
}

elementwise! {
    /// Square of each value.
    sqr = ggml_sqr;
    /// Square root of each value.
    sqrt = ggml_sqrt;
    /// Natural logarithm of each value.
    log = ggml_log;
    /// Exponential of each value.
    exp = ggml_exp;
    /// Sine of each value.
    sin = ggml_sin;
    /// Cosine of each value.
    cos = ggml_cos;
    /// Absolute value of each value.
    abs = ggml_abs;
    /// Hyperbolic tangent of each value.
    tanh = ggml_tanh;
    /// Logistic function of each value.
    sigmoid = ggml_sigmoid;
    /// max(x, 0).
    relu = ggml_relu;
    /// x for x > 0, else exp(x) - 1.
    elu = ggml_elu;
    /// x sigmoid(x), also called swish.
    silu = ggml_silu;
    /// GELU in its tanh approximation.
    gelu_tanh = ggml_gelu;
    /// log(1 + exp(x)).
    softplus = ggml_softplus;
    /// Sum over the last axis, which stays with extent one.
    sum_last = ggml_sum_rows;
    /// Mean over the last axis, which stays with extent one.
    mean_last = ggml_mean;
    /// Running sum along the last axis.
    cumsum = ggml_cumsum;
}

impl<'g> Tensor<'g> {
    fn f32_unary(
        self,
        op: &'static str,
        make: unsafe extern "C" fn(
            *mut sys::ggml_context,
            *mut sys::ggml_tensor,
        ) -> *mut sys::ggml_tensor,
    ) -> Tensor<'g> {
        if self.dtype() != DType::F32 {
            return self.scope.mistake(op, format!("takes f32, found {self:?}"));
        }
        let mut result = self.contiguous().unary(make);
        result.rank = self.rank;
        result
    }

    /// Each value times `factor`.
    pub fn scale(self, factor: f32) -> Tensor<'g> {
        self.scale_add(factor, 0.0)
    }

    /// Each value times `factor`, plus `offset`.
    pub fn scale_add(self, factor: f32, offset: f32) -> Tensor<'g> {
        if self.dtype() != DType::F32 {
            return self
                .scope
                .mistake("scale_add", format!("takes f32, found {self:?}"));
        }
        let x = self.contiguous();
        // SAFETY: f32 and packed.
        self.scope.emit(self.rank(), |ctx| unsafe {
            sys::ggml_scale_bias(ctx, x.ptr.as_ptr(), factor, offset)
        })
    }

    /// GELU in its exact form, with the error function.
    pub fn gelu(self) -> Tensor<'g> {
        if !self.scope.device().is_cpu() || self.dtype() != DType::F32 {
            return self.f32_unary("gelu", sys::ggml_gelu_erf);
        }
        let factors = self.scope.products.borrow().get(&self.ptr).copied();
        if let Some(Factors { x, weight, bias }) = factors {
            // Made anew with the activation in it; ggml leaves out what nobody reads.
            let of = |ptr, rank| Tensor { ptr, rank, ..self };
            let bias = bias.map(|bias| of(bias, 1));
            return of(x, self.rank).product(of(weight, 2), bias, Product { gelu: true });
        }
        let x = self.contiguous();
        self.scope.host_op(x.extents(), &[x], Gelu)
    }

    /// WaveNet's gate tanh(a) σ(b), where the last axis holds a then b.
    pub fn gated_tanh(self) -> Tensor<'g> {
        let mut shape = self.shape();
        let half = shape.last_mut().filter(|n| n.is_multiple_of(2));
        if half.map(|n| *n /= 2).is_none() || self.dtype() != DType::F32 {
            return self
                .scope
                .mistake("gated_tanh", format!("takes f32 [.., 2 n], found {self:?}"));
        }
        match Shape::new(&shape).filter(|_| self.scope.device().is_cpu()) {
            Some(shape) => self.scope.host_op(shape, &[self.packed_rows()], GatedTanh),
            None => {
                let [a, b] = self.split::<2>(-1);
                a.tanh() * b.sigmoid()
            }
        }
    }

    /// x for x > 0, else `slope` x. Written with operators that use every thread.
    pub fn leaky_relu(self, slope: f32) -> Tensor<'g> {
        self.relu().scale(1.0 - slope) + self.scale(slope)
    }

    /// Each value moved into `low ..= high`.
    pub fn clamp(self, low: f32, high: f32) -> Tensor<'g> {
        if self.dtype() != DType::F32 || low.is_nan() || high.is_nan() || low > high {
            return self
                .scope
                .mistake("clamp", format!("{self:?} to {low}..={high}"));
        }
        let x = self.contiguous();
        // ggml clamps in place where it may; a copy keeps `self` usable.
        // SAFETY: f32 and packed.
        self.scope.emit(self.rank(), |ctx| unsafe {
            let copy = sys::ggml_cont(ctx, x.ptr.as_ptr());
            sys::ggml_clamp(ctx, copy, low, high)
        })
    }

    /// Softmax over the last axis of `scale` x, plus `mask` `[.., query, key]` (f16 or f32) where
    /// given. A row that the mask takes away wholly becomes NaN.
    pub fn softmax(self, scale: f32, mask: Option<Tensor<'g>>) -> Tensor<'g> {
        let a = self.ne();
        let fits = mask.is_none_or(|m| {
            let b = m.ne();
            let spread = b[0] == a[0] && b[1] == a[1] && a[2] % b[2] == 0 && a[3] % b[3] == 0;
            spread && matches!(m.dtype(), DType::F16 | DType::F32)
        });
        if !fits || self.dtype() != DType::F32 {
            return self.scope.mistake(
                "softmax",
                format!("f32 wanted; {self:?} with mask {mask:?}"),
            );
        }
        let (x, mask) = (self.contiguous(), mask.map(Tensor::contiguous));
        let mask = mask.map_or(std::ptr::null_mut(), |m| m.ptr.as_ptr());
        // SAFETY: packed f32, and a mask that ggml accepts.
        self.scope.emit(self.rank(), |ctx| unsafe {
            sys::ggml_soft_max_ext(ctx, x.ptr.as_ptr(), mask, scale, 0.0)
        })
    }

    /// (x - mean) / sqrt(variance + eps) over the last axis.
    pub fn norm(self, eps: f32) -> Tensor<'g> {
        self.normed("norm", eps, sys::ggml_norm)
    }

    /// x / sqrt(mean of squares + eps) over the last axis.
    pub fn rms_norm(self, eps: f32) -> Tensor<'g> {
        self.normed("rms_norm", eps, sys::ggml_rms_norm)
    }

    fn normed(
        self,
        op: &'static str,
        eps: f32,
        make: unsafe extern "C" fn(
            *mut sys::ggml_context,
            *mut sys::ggml_tensor,
            f32,
        ) -> *mut sys::ggml_tensor,
    ) -> Tensor<'g> {
        if self.dtype() != DType::F32 || !eps.is_finite() || eps < 0.0 {
            return self.scope.mistake(
                op,
                format!("takes f32 and a small eps, found {self:?}, {eps}"),
            );
        }
        let x = self.contiguous();
        // SAFETY: packed f32 rows and a non-negative eps.
        self.scope
            .emit(self.rank(), |ctx| unsafe { make(ctx, x.ptr.as_ptr(), eps) })
    }

    /// Layer normalisation over the last axis with gain and bias.
    pub fn layer_norm(self, gain: &DeviceTensor, bias: &DeviceTensor, eps: f32) -> Tensor<'g> {
        self.norm(eps) * gain + bias
    }

    /// Group normalisation of `[batch, channel, time]` (or `[channel, time]`): each of `groups`
    /// runs of channels is normalised over its channels and all of time.
    pub fn group_norm(self, groups: usize, eps: f32) -> Tensor<'g> {
        let shape = self.shape();
        let (batch, channels, time) = match shape[..] {
            [c, t] => (1, c, t),
            [b, c, t] => (b, c, t),
            _ => {
                return self.scope.mistake(
                    "group_norm",
                    format!("takes [batch, channel, time], found {self:?}"),
                );
            }
        };
        if groups == 0 || channels % groups != 0 {
            return self.scope.mistake(
                "group_norm",
                format!("{channels} channels in {groups} groups"),
            );
        }
        self.reshape(&[batch, groups, channels / groups * time])
            .norm(eps)
            .reshape(&shape)
    }

    /// Position of the largest value of each row of a matrix `[rows, n]` -> i32 `[rows]`; of equal
    /// values, any. A row without a number gives some position of the row.
    pub fn argmax(self) -> Tensor<'g> {
        // Positions up to here are exact in f32.
        const MOST: usize = 1 << 24;
        let n = self.extents().as_slice().last().copied().unwrap_or(0);
        if self.rank() != 2 || self.dtype() != DType::F32 || n > MOST {
            return self
                .scope
                .mistake("argmax", format!("takes f32 [rows, n], found {self:?}"));
        }
        let x = self.contiguous();
        // SAFETY: a packed f32 matrix.
        let found = self
            .scope
            .emit(1, |ctx| unsafe { sys::ggml_argmax(ctx, x.ptr.as_ptr()) });
        let found = if self.scope.device().is_cpu() {
            found
        } else {
            // GPU kernels return -1 for a row of NaN.
            let inside = found.convert(DType::F32).clamp(0.0, (n - 1) as f32);
            inside.convert(DType::I32)
        };
        self.scope.ranges.borrow_mut().insert(found.ptr, n);
        found
    }

    /// The product with a transposed matrix: `[.., m, k]` and `[.., n, k]` -> `[.., m, n]`. The
    /// other side's leading axes broadcast.
    pub fn matmul_t(self, other: Tensor<'g>) -> Tensor<'g> {
        let (a, b) = (self.ne(), other.ne());
        let fits = self.rank() >= 1
            && self.rank() >= other.rank()
            && a[0] == b[0]
            && a[2] % b[2] == 0
            && a[3] % b[3] == 0
            && self.dtype() == DType::F32
            && other.dtype().reads_as_f32()
            && Shape::countable(&[b[1], a[1], a[2], a[3]]);
        if !fits {
            return self
                .scope
                .mistake("matmul_t", format!("{self:?} and {other:?}"));
        }
        let (x, w) = match self.scope.device().is_cpu() {
            true => (self.packed_rows(), other.packed_rows()),
            false => (self.aligned_rows(), other.aligned_rows()),
        };
        if Product::serves(x, w) {
            return x.product(w, None, Product { gelu: false });
        }
        let exact = self.scope.exact();
        // SAFETY: inner extents agree, leading ones broadcast, rows are packed, so none of the
        // sides is transposed.
        self.scope.emit(self.rank().max(2), |ctx| unsafe {
            let product = sys::ggml_mul_mat(ctx, w.ptr.as_ptr(), x.ptr.as_ptr());
            if exact {
                sys::ggml_prec_set_acc(product, sys::GGML_PREC_F32);
            }
            product
        })
    }

    /// The same product (plus `bias` `[n]`) by code of ours, where [`Product::serves`].
    fn product(self, weight: Tensor<'g>, bias: Option<Tensor<'g>>, op: Product) -> Tensor<'g> {
        let mut shape = self.shape();
        if let Some(last) = shape.last_mut() {
            *last = weight.ne()[1] as usize;
        }
        let Some(shape) = Shape::new(&shape) else {
            return self.scope.mistake("matmul_t", format!("{shape:?}"));
        };
        let inputs: Vec<Tensor> = [self, weight].into_iter().chain(bias).collect();
        let product = self.scope.host_op(shape, &inputs, op);
        let factors = Factors {
            x: self.ptr,
            weight: weight.ptr,
            bias: bias.map(|b| b.ptr),
        };
        if !op.gelu && !self.scope.failed() {
            let mut products = self.scope.products.borrow_mut();
            products.insert(product.ptr, factors);
        }
        product
    }

    /// The product `[.., m, k]` and `[.., k, n]` -> `[.., m, n]`; the right side is transposed in
    /// memory first.
    pub fn matmul(self, other: Tensor<'g>) -> Tensor<'g> {
        self.matmul_t(other.transpose().contiguous())
    }

    /// A linear layer: `[.., in]` by a weight `[out, in]` (+ bias `[out]`) -> `[.., out]`.
    pub fn linear(self, weight: &DeviceTensor, bias: Option<&DeviceTensor>) -> Tensor<'g> {
        if weight.shape().len() != 2 {
            return self
                .scope
                .mistake("linear", format!("weight {weight:?} is no matrix"));
        }
        let weight = self.scope.stored(weight);
        if let Some(bias) = bias
            && Product::serves(self, weight)
            && bias.dtype() == DType::F32
            && bias.shape() == [weight.dim(0)]
        {
            let bias = self.scope.stored(bias);
            return self
                .packed_rows()
                .product(weight, Some(bias), Product { gelu: false });
        }
        let y = match self.rank() {
            1 => self
                .reshape(&[1, self.dim(0)])
                .matmul_t(weight)
                .reshape(&[weight.dim(0)]),
            _ => self.matmul_t(weight),
        };
        match bias {
            Some(bias) => y + bias,
            None => y,
        }
    }

    /// Rows of a table `[rows, width]` at the positions in this i32 `[n]` -> f32 `[n, width]`. The
    /// positions come from an input, which is checked when it is written, or from
    /// [`argmax`](Self::argmax).
    pub fn look_up(self, table: Tensor<'g>) -> Tensor<'g> {
        let (i, t) = (self.ne(), table.ne());
        let shapes = self.rank() == 1 && table.rank() == 2 && Shape::countable(&[t[0], i[0]]);
        if self.dtype() != DType::I32 || !shapes || !table.dtype().reads_as_f32() {
            return self
                .scope
                .mistake("look_up", format!("{self:?} in {table:?}"));
        }
        if !self.scope.index("look_up", self, t[1] as usize) {
            return self.scope.placeholder(2);
        }
        let (at, table) = (self.contiguous(), table.packed_rows());
        // SAFETY: an i32 vector of positions into a matrix with packed rows.
        self.scope.emit(2, |ctx| unsafe {
            sys::ggml_get_rows(ctx, table.ptr.as_ptr(), at.ptr.as_ptr())
        })
    }

    /// a sigmoid(b), silu(a) b and their kin, where the last axis holds a then b.
    pub fn glu(self, kind: Glu) -> Tensor<'g> {
        let mut shape = self.shape();
        let half = shape.last_mut().filter(|n| n.is_multiple_of(2));
        let halved = half.map(|n| *n /= 2).and_then(|()| Shape::new(&shape));
        if let (Glu::Sigmoid, Some(shape), DType::F32) = (kind, halved, self.dtype())
            && self.scope.device().is_cpu()
        {
            return self.scope.host_op(shape, &[self.packed_rows()], SigmoidGlu);
        }
        let make = match kind {
            Glu::Sigmoid => {
                let [a, b] = self.split::<2>(-1);
                return a.contiguous() * b.sigmoid();
            }
            Glu::Silu => sys::ggml_swiglu,
            Glu::Gelu => sys::ggml_geglu_erf,
        };
        if halved.is_none() || self.dtype() != DType::F32 {
            return self
                .scope
                .mistake("glu", format!("takes f32 [.., 2 n], found {self:?}"));
        }
        self.contiguous().unary(make)
    }
}

/// The gate of [`Tensor::glu`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glu {
    /// a sigmoid(b): the original gated linear unit.
    Sigmoid,
    /// silu(a) b: SwiGLU.
    Silu,
    /// gelu(a) b: GEGLU.
    Gelu,
}

impl Scope {
    /// `start, start + 1, ..` as f32 `[n]`.
    pub fn arange(&self, start: usize, n: usize) -> Tensor<'_> {
        let end = start.checked_add(n).filter(|&end| n > 0 && end <= 1 << 24);
        let Some(end) = end else {
            return self.mistake(
                "arange",
                format!("{n} values from {start}; f32 counts to 2^24"),
            );
        };
        // SAFETY: a positive number of steps.
        self.emit(1, |ctx| unsafe {
            sys::ggml_arange(ctx, start as f32, end as f32, 1.0)
        })
    }
}
