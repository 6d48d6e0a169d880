"""Runs hibari in onnxruntime without noise and stores what its stages give.

    python tests/reference/hibari_reference.py WHEEL_FOLDER tests/data/hibari/published.safetensors

Needs numpy, onnx, onnxruntime, safetensors, scipy. WHEEL_FOLDER holds the unpacked wheel hibari-tts
0.2.1 (PyPI). The published network rounds activations to 8 bits before each product; the expected
values are those of the same weights with f32 activations, and the notes say how far the two are
apart.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from safetensors.numpy import save_file

PHONEMES = "həlˈO ðˈɛɹ, hˌW ɑɹ ju dˈuɪŋ tədˈA?"
STAGES = {
    "text": "/Transpose_22_output_0",
    "prosody": "/Transpose_55_output_0",
    "durations": "/Gather_31_output_0",
    "melody": "/pro_out/Conv_output_0",
}


def with_float_products(model):
    """Every product of whole numbers as one of floats, by the same weights."""
    graph = model.graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    readers = {}
    for node in graph.node:
        for value in node.input:
            readers.setdefault(value, []).append(node)

    def reader(value, op):
        return next(node for node in readers[value] if node.op_type == op)

    nodes, replaced = [], set()
    for node in graph.node:
        if node.op_type != "MatMulInteger":
            nodes.append(node)
            continue
        cast = reader(node.output[0], "Cast")
        scaled = reader(cast.output[0], "Mul")
        scales = makers[next(value for value in scaled.input if value != cast.output[0])]
        scale = next(tensors[value] for value in scales.input if value in tensors)
        whole, zero = tensors[node.input[1]].astype(np.float32), tensors[node.input[3]].astype(np.float32)
        name = node.output[0] + "_weight"
        graph.initializer.append(numpy_helper.from_array((whole - zero) * scale, name))
        x = makers[node.input[0]].input[0]
        nodes.append(helper.make_node("MatMul", [x, name], [scaled.output[0]]))
        replaced |= {cast.output[0], scaled.output[0]}
    nodes = [n for n in nodes if n.op_type == "MatMul" or n.output[0] not in replaced]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def run(model, ids):
    names = [output.name for output in model.graph.output]
    for value in STAGES.values():
        model.graph.output.append(onnx.ValueInfoProto(name=value))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    given = {"ids": ids[None], "speed": np.ones(1, np.float32)}
    found = session.run(None, given)
    return dict(zip([*names, *STAGES], found))


class NoNoise:
    """Stands for numpy's generator where there is to be no noise."""

    def standard_normal(self, shape, dtype):
        return np.zeros(shape, dtype)


def main():
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(folder / "hibari"))
    import dsp

    path = folder / "hibari/assets/hibari.onnx"
    vocab = json.loads((folder / "hibari/assets/vocab.json").read_text())
    ids = np.array([0, *[vocab[char] for char in PHONEMES], 0], np.int64)
    values = run(with_float_products(onnx.load(path)), ids)
    rounded = run(onnx.load(path), ids)

    def samples(found):
        parts = [found[name][0] for name in ("lh", "theta", "ln", "lr", "phi", "f0")]
        return dsp.synth(*parts, NoNoise())

    spectra = np.concatenate([values[name][0] for name in ("lh", "theta", "ln", "lr", "phi")]).T
    tensors = {
        "ids": ids.astype(np.int32),
        "text": np.ascontiguousarray(values["text"][0].T),
        "prosody": np.ascontiguousarray(values["prosody"][0].T),
        "durations": values["durations"].reshape(-1),
        "melody": np.ascontiguousarray(values["melody"][0].T),
        "pitch": values["f0"][0],
        "spectra": np.ascontiguousarray(spectra[::10]),
        "samples": samples(values).astype(np.float32),
    }
    notes = {"phonemes": PHONEMES}
    for name in ("text", "prosody", "durations"):
        off = np.linalg.norm(values[name] - rounded[name]) / np.linalg.norm(values[name])
        notes[f"rounding.{name}"] = f"{off:.1e}"
    print(notes)
    save_file(tensors, target, metadata=notes)
    for name, value in tensors.items():
        print(name, value.shape, value.dtype, float(np.abs(value).max()))


if __name__ == "__main__":
    main()
