"""Formula weights: each tensor is a function of its name and shape; `formula.rs` is the twin.

A test can build a checkpoint of any size on both sides and store only the expected outputs.

    key(name) = 64-bit FNV-1a of the name's UTF-8 bytes
    h(i)      = splitmix64 finaliser of key + (i + 1) * 0x9E3779B97F4A7C15, i = row-major index
    u(i)      = top 24 bits of h(i), scaled to [-1, 1): exact in f32
    rank 0, 1: gains (names that end as in GAINS) 1 + 0.1 u, everything else 0.1 u
    rank >= 2: u * sqrt(3 / fan_in), fan_in = product of all dimensions but the first
    names that end as in POSITIVE: 1 + 0.1 u at any rank
"""
import numpy as np

POSITIVE = ("weight_g", "original0", "running_var", "alpha", "layer_scale", "gamma_1", "gamma_2")
GAINS = ("weight", "gamma", "scale", ".g")


def key(name):
    """64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def unit(name, count):
    """`count` f32 values in [-1, 1) for the tensor `name`."""
    steps = np.arange(1, count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = np.uint64(key(name)) + steps * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return ((x >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(np.float32)


def tensor(name, shape):
    """The f32 tensor `name` of `shape`."""
    values = unit(name, int(np.prod(shape))).reshape(shape)
    if name.endswith(POSITIVE) or (len(shape) < 2 and name.endswith(GAINS)):
        return np.float32(1) + np.float32(0.1) * values
    if len(shape) < 2:
        return np.float32(0.1) * values
    return values * np.float32(np.sqrt(3 / np.prod(shape[1:], dtype=np.float64)))


def fill(module):
    """Overwrites the floating-point tensors of a torch module, each by its state_dict name.

    Tied tensors share memory: the first of their names counts.
    """
    import torch

    filled = set()
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if value.is_floating_point() and value.data_ptr() not in filled:
                filled.add(value.data_ptr())
                value.copy_(torch.from_numpy(np.asarray(tensor(name, tuple(value.shape)))))
    return module.eval()
