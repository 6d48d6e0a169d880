//! The rows.
use super::{
    super::kind::BackendType::{self, Cpu, Cuda, Hip, Metal, Vulkan},
    FastPath,
    Status::{self, Allowed, Off, Validated},
};

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    /// The path.
    pub path: FastPath,
    /// What options and output call it.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// What runs without it.
    pub instead: &'static str,
    /// ggml operations that the device must have.
    pub ops: &'static [&'static str],
    /// Status for CPU, CUDA, HIP, Vulkan and Metal.
    pub(super) status: [(BackendType, Status, &'static str); 5],
}

const UNMEASURED: &str = "not yet compared with the CPU on this hardware";
const TESTED: &str = "compared with the plain path by the tests";
const SAME_CODE: &str = "runs CUDA's kernels; not yet compared on AMD hardware";

/// Every row, in the order of [`FastPath`].
pub static TABLE: [Row; 18] = [
    Row {
        path: FastPath::DepthwiseConv1d,
        name: "depthwise-conv1d",
        what: "depthwise 1-D convolution as one operation",
        instead: "im2col and one small product a channel",
        ops: &["CONV_2D_DW"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::ConvTransposeCol2im,
        name: "conv-transpose-col2im",
        what: "transposed 1-D convolution as matrix product and overlap-add",
        instead: "the direct kernel, which visits every output for every tap",
        ops: &["MUL_MAT", "COL2IM_1D"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (
                Hip,
                Allowed,
                "reported correct on gfx1151 by the C++ ancestor's users",
            ),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::PackedProjection,
        name: "packed-projection",
        what: "query, key, value (and gate) weights joined into one matrix product",
        instead: "one product each",
        ops: &["MUL_MAT", "VIEW"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::FlashAttention,
        name: "flash-attention",
        what: "attention without storing the matrix of scores",
        instead: "product, softmax, product",
        ops: &["FLASH_ATTN_EXT"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::GraphIstft,
        name: "graph-istft",
        what: "inverse Fourier transform as matrix product and overlap-add on the device",
        instead: "FFT on the host after reading the spectrum back",
        ops: &["MUL_MAT", "COL2IM_1D"],
        status: [
            (Cpu, Off, "the host's FFT is faster than the product"),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::FusedSnake,
        name: "fused-snake",
        what: "the five operations of snake in the order that backends fuse",
        instead: "the same operations in any order",
        ops: &["MUL", "SIN", "SQR", "ADD"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::Bf16Weights,
        name: "bf16-weights",
        what: "bfloat16 checkpoints kept as stored",
        instead: "converted to half precision, or to single where values do not fit",
        ops: &["MUL_MAT"],
        status: [
            (Cpu, Off, "half precision products are several times faster"),
            (Cuda, Allowed, UNMEASURED),
            (
                Hip,
                Allowed,
                "RDNA3 and newer multiply bfloat16; not yet compared on AMD hardware",
            ),
            (Vulkan, Off, "few drivers have bfloat16 products"),
            (Metal, Off, "older Apple GPUs lack bfloat16"),
        ],
    },
    Row {
        path: FastPath::F16Weights,
        name: "f16-weights",
        what: "single-precision checkpoints stored in half precision",
        instead: "kept in single precision",
        ops: &["MUL_MAT"],
        status: [
            (
                Cpu,
                Off,
                "changes results in the fourth digit; ask for it with --weight-type",
            ),
            (
                Cuda,
                Off,
                "changes results in the fourth digit; ask for it with --weight-type",
            ),
            (
                Hip,
                Off,
                "changes results in the fourth digit; ask for it with --weight-type",
            ),
            (
                Vulkan,
                Off,
                "changes results in the fourth digit; ask for it with --weight-type",
            ),
            (
                Metal,
                Off,
                "changes results in the fourth digit; ask for it with --weight-type",
            ),
        ],
    },
    Row {
        path: FastPath::QuantizedWeights,
        name: "quantized-weights",
        what: "quantised language-model weights multiplied as they are",
        instead: "expanded at load",
        ops: &["MUL_MAT"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::MappedWeights,
        name: "mapped-weights",
        what: "weights used in the mapped file, without a copy",
        instead: "copied into the device's memory",
        ops: &[],
        status: [
            (
                Cpu,
                Allowed,
                "saves memory; pages may be read again under pressure",
            ),
            (Cuda, Off, "the device has memory of its own"),
            (
                Hip,
                Off,
                "gfx1151 was reported to read mapped weights wrongly now and then",
            ),
            (Vulkan, Off, "needs a driver extension that few have"),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::TorchCudaRandom,
        name: "torch-cuda-random",
        what: "noise in the order that PyTorch draws it on CUDA, made on the host",
        instead: "PyTorch's CPU order",
        ops: &[],
        status: [
            (
                Cpu,
                Validated,
                "the host makes the numbers on every backend",
            ),
            (
                Cuda,
                Validated,
                "the host makes the numbers on every backend",
            ),
            (
                Hip,
                Validated,
                "the host makes the numbers on every backend",
            ),
            (
                Vulkan,
                Validated,
                "the host makes the numbers on every backend",
            ),
            (
                Metal,
                Validated,
                "the host makes the numbers on every backend",
            ),
        ],
    },
    Row {
        path: FastPath::LongVoicePrompt,
        name: "long-voice-prompt",
        what: "voice prompts of up to 30 s",
        instead: "cut at 10 s",
        ops: &[],
        status: [
            (
                Cpu,
                Off,
                "the prompt's encoding takes too long; force it if you can wait",
            ),
            (Cuda, Allowed, UNMEASURED),
            (
                Hip,
                Allowed,
                "reported correct on gfx1151 by the C++ ancestor's users",
            ),
            (
                Vulkan,
                Off,
                "the encoder's batched convolution is not yet measured",
            ),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::BatchedConv,
        name: "batched-conv",
        what: "one convolution for a whole batch",
        instead: "one for each item",
        ops: &["IM2COL", "MUL_MAT"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (
                Vulkan,
                Off,
                "the ancestor split batches here; not yet measured",
            ),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::BatchedPrefill,
        name: "batched-prefill",
        what: "the whole prompt through the decoder at once",
        instead: "position by position",
        ops: &["MUL_MAT", "SET_ROWS"],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Allowed, UNMEASURED),
            (Hip, Allowed, SAME_CODE),
            (Vulkan, Allowed, UNMEASURED),
            (Metal, Allowed, UNMEASURED),
        ],
    },
    Row {
        path: FastPath::DeviceVoiceEncoder,
        name: "device-voice-encoder",
        what: "reference voices encoded on the device",
        instead: "encoded on the CPU, so that a rounding cannot change a code",
        ops: &[],
        status: [
            (Cpu, Validated, TESTED),
            (
                Cuda,
                Off,
                "TF32 products can change a code; the CPU's codes are the reference",
            ),
            (
                Hip,
                Off,
                "not yet compared on AMD hardware; the CPU's codes are the reference",
            ),
            (Vulkan, Off, "half-precision sums can change a code"),
            (
                Metal,
                Off,
                "not yet compared; the CPU's codes are the reference",
            ),
        ],
    },
    Row {
        path: FastPath::BlockedProduct,
        name: "blocked-product",
        what: "products and attention of 24 rows and more by blocked f32 code, halves widened block by block",
        instead: "ggml's operators, which round activations to the type of the weights",
        ops: &[],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Off, "code for the CPU"),
            (Hip, Off, "code for the CPU"),
            (Vulkan, Off, "code for the CPU"),
            (Metal, Off, "code for the CPU"),
        ],
    },
    Row {
        path: FastPath::ShortConv,
        name: "short-conv",
        what: "convolutions of 2 to 14 taps along time, or over a plane, by the scheme of Toom and Cook",
        instead: "one product over the unfolded input",
        ops: &[],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Off, "code for the CPU"),
            (Hip, Off, "code for the CPU"),
            (Vulkan, Off, "code for the CPU"),
            (Metal, Off, "code for the CPU"),
        ],
    },
    Row {
        path: FastPath::AliasFreeSnake,
        name: "alias-free-snake",
        what: "snakes at twice the rate and the filters around them in one pass",
        instead: "filters as products, and an operator for each step of the snake",
        ops: &[],
        status: [
            (Cpu, Validated, TESTED),
            (Cuda, Off, "code for the CPU"),
            (Hip, Off, "code for the CPU"),
            (Vulkan, Off, "code for the CPU"),
            (Metal, Off, "code for the CPU"),
        ],
    },
];

impl Row {
    /// Status and its reason on a kind of backend; off for `Best`, which is no kind of device.
    pub fn status(&self, backend: BackendType) -> (Status, &'static str) {
        self.status
            .iter()
            .find(|(kind, ..)| *kind == backend)
            .map_or((Off, "no device"), |(_, status, reason)| (*status, reason))
    }
}
