"""Runs Silero VAD in its own runtimes and stores the probabilities and segments that it gives.

    python tests/reference/silero_reference.py WHEEL_FOLDER tests/data/silero_vad

Needs numpy, onnxruntime, safetensors, soundfile. WHEEL_FOLDER holds the unpacked wheel silero-vad
6.2.3 (PyPI). torch is not needed: what is taken from the package computes with Python numbers.
"""
import json
import sys
import types
from pathlib import Path

import numpy as np
import onnxruntime
import soundfile
from safetensors.numpy import load_file, save_file

CLIPS = ["jfk", *(f"sense-and-sensibility-{n}" for n in ("0870", "0880", "0890", "0920", "0930"))]


def noise(count):
    """A linear congruential generator's numbers in -1..1."""
    state, out = 1, np.empty(count, np.float32)
    for i in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out[i] = np.float32(state >> 8) / np.float32(1 << 23) - np.float32(1)
    return out


def sound():
    """All clips, a second of faint noise before each; the end fills no frame."""
    folder = Path(__file__).parent.parent / "speech"
    gap = noise(16000) * np.float32(0.01)
    parts = []
    for clip in CLIPS:
        samples, rate = soundfile.read(folder / f"{clip}.flac", dtype="float32")
        assert rate == 16000
        parts += [gap, samples]
    return np.concatenate([*parts, gap[:1000]])


def frames(samples, rate):
    """Context and frame, one row each."""
    size, before = (512, 64) if rate == 16000 else (256, 32)
    samples = np.pad(samples, (before, -len(samples) % size))
    starts = range(0, len(samples) - before, size)
    return np.stack([samples[at : at + before + size] for at in starts])


def by_onnxruntime(path, samples, rate):
    session = onnxruntime.InferenceSession(path)
    takes_rate = any(given.name == "sr" for given in session.get_inputs())
    state = np.zeros((2, 1, 128), np.float32)
    out = []
    for row in frames(samples, rate):
        given = {"input": row[None], "state": state}
        if takes_rate:
            given["sr"] = np.array(rate, np.int64)
        probability, state = session.run(None, given)
        out.append(probability[0, 0])
    return np.array(out, np.float32)


def by_numpy(path, samples):
    """The safetensors file has no runtime but its authors' tinygrad model; this is its figure."""
    w = {name: value.astype(np.float64) for name, value in load_file(path).items()}
    sigmoid = lambda x: 1 / (1 + np.exp(-x))

    def conv(x, name, stride, padding):
        x = np.pad(x, ((0, 0), (padding, padding)))
        kernel = w[f"{name}.weight"]
        views = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2], axis=1)[:, ::stride]
        return np.einsum("ock,ctk->ot", kernel, views) + w.get(f"{name}.bias", np.zeros(1))[:, None]

    h, c, out = np.zeros(128), np.zeros(128), []
    for row in frames(samples, 16000).astype(np.float64):
        x = conv(np.pad(row, (0, 64), mode="reflect")[None], "stft_conv", 128, 0)
        x = np.sqrt(x[:129] ** 2 + x[129:] ** 2)
        for i, stride in enumerate((1, 2, 2, 1), 1):
            x = np.maximum(conv(x, f"conv{i}", stride, 1), 0)
        gates = w["lstm_cell.weight_ih"] @ x[:, 0] + w["lstm_cell.bias_ih"]
        gates += w["lstm_cell.weight_hh"] @ h + w["lstm_cell.bias_hh"]
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(sigmoid(w["final_conv.weight"][0, :, 0] @ np.maximum(h, 0) + w["final_conv.bias"])[0])
    return np.array(out, np.float32)


def segmenter(wheel):
    """The package's own function from probabilities to segments."""
    torch = types.ModuleType("torch")
    torch.Tensor, torch.no_grad = object, lambda: lambda function: function
    torch.device, torch.jit = (lambda name: name), types.SimpleNamespace(ScriptModule=object)
    sys.modules["torch"] = torch
    source = (wheel / "silero_vad/utils_vad.py").read_text()
    names = {"__name__": "utils_vad"}
    exec(compile(source, "utils_vad.py", "exec"), names)
    return names["get_speech_timestamps_from_probs"]


def rules():
    """Settings for the segmenter: the defaults, and what turns each of its corners."""
    for change in (
        {},
        {"threshold": 0.8},
        {"threshold": 0.1},
        {"threshold": 0.5, "neg_threshold": 0.45},
        {"min_silence_duration_ms": 0},
        {"min_silence_duration_ms": 700, "speech_pad_ms": 400},
        {"min_speech_duration_ms": 0, "speech_pad_ms": 200},
        {"min_speech_duration_ms": 2000},
        {"max_speech_duration_s": 2.0},
        {"max_speech_duration_s": 3.5, "min_silence_duration_ms": 500, "speech_pad_ms": 100},
        {"max_speech_duration_s": 1.0, "min_silence_at_max_speech": 20},
        {"max_speech_duration_s": 5.0, "min_silence_at_max_speech": 400, "threshold": 0.3},
    ):
        yield change


def main():
    wheel, target = Path(sys.argv[1]), Path(sys.argv[2])
    data = wheel / "silero_vad/data"
    wide = sound()
    narrow = np.ascontiguousarray(wide[::2])
    values = {
        "silero_vad.16000": by_onnxruntime(data / "silero_vad.onnx", wide, 16000),
        "silero_vad.8000": by_onnxruntime(data / "silero_vad.onnx", narrow, 8000),
        "silero_vad_op18_ifless.16000": by_onnxruntime(data / "silero_vad_op18_ifless.onnx", wide, 16000),
        "silero_vad_op18_ifless.8000": by_onnxruntime(data / "silero_vad_op18_ifless.onnx", narrow, 8000),
        "silero_vad_16k_op15.16000": by_onnxruntime(data / "silero_vad_16k_op15.onnx", wide, 16000),
        "silero_vad_16k.16000": by_numpy(data / "silero_vad_16k.safetensors", wide),
    }
    save_file(values, target / "probabilities.safetensors")
    for name, value in values.items():
        away = np.abs(value - values["silero_vad.16000"][: len(value)]).max()
        print(f"{name:32} {value.shape} mean {value.mean():.4f}, from the first {away:.1e}")

    find = segmenter(wheel)
    walk = np.cumsum(noise(3000) * np.float32(0.25))
    walk = np.abs((walk % np.float32(2)) - np.float32(1)).astype(np.float32)
    cases = []
    for signal, probabilities, rate, samples in (
        ("silero_vad.16000", values["silero_vad.16000"], 16000, len(wide)),
        ("silero_vad.8000", values["silero_vad.8000"], 8000, len(narrow)),
        ("walk", walk, 16000, 512 * 3000 - 100),
    ):
        for change in rules():
            found = find([float(p) for p in probabilities], sampling_rate=rate,
                         audio_length_samples=samples, **change)
            spans = [[span["start"], span["end"]] for span in found]
            cases.append({"signal": signal, "rate": rate, "samples": samples, "rules": change, "spans": spans})
    save_file({"walk": walk}, target / "walk.safetensors")
    lines = ",\n".join(json.dumps(case) for case in cases)
    (target / "segments.json").write_text(f"[\n{lines}\n]\n")
    print([len(case["spans"]) for case in cases])


if __name__ == "__main__":
    main()
