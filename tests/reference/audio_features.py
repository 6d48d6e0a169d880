"""Writes tests/data/audio/features.json: STFT, mel filters and Whisper features by the textbook.

Run with numpy alone: python tests/reference/audio_features.py
With `--check` it also compares against transformers' WhisperFeatureExtractor, if installed.
"""

import json
import pathlib
import sys

import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "data" / "audio" / "features.json"


def signal(n):
    """Two tones and a little noise from a linear congruential generator; the tests have it too."""
    state, noise = 1, np.empty(n)
    for i in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        noise[i] = (state >> 8) / 2**23 - 1
    i = np.arange(n)
    tones = 0.4 * np.sin(2 * np.pi * 0.013 * i) + 0.2 * np.sin(2 * np.pi * 0.171 * i + 0.5)
    return (tones + 0.1 * noise).astype(np.float32)


def hann(n):
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)


def stft(x, n_fft, hop, win, center=True, mode="reflect", normalized=False, onesided=True):
    """torch.stft's definition; [frames, bins]."""
    window = np.zeros(n_fft)
    left = (n_fft - win) // 2
    window[left : left + win] = hann(win)
    x = x.astype(np.float64)
    if center:
        x = np.pad(x, n_fft // 2, mode=mode)
    frames = 1 + (len(x) - n_fft) // hop
    cut = np.stack([x[t * hop : t * hop + n_fft] * window for t in range(frames)])
    bins = np.fft.fft(cut)
    if onesided:
        bins = bins[:, : n_fft // 2 + 1]
    return bins / np.sqrt(n_fft) if normalized else bins


def mel_filters(rate, n_fft, n_mels, f_min, f_max, htk, slaney_norm):
    """librosa.filters.mel's definition; [n_mels, bins]."""

    def to_mel(f):
        f = np.asarray(f, dtype=np.float64)
        if htk:
            return 2595 * np.log10(1 + f / 700)
        step = np.log(6.4) / 27
        return np.where(f >= 1000, 15 + np.log(np.maximum(f, 1) / 1000) / step, f * 3 / 200)

    def to_hz(m):
        if htk:
            return 700 * (10 ** (m / 2595) - 1)
        step = np.log(6.4) / 27
        return np.where(m >= 15, 1000 * np.exp(step * (m - 15)), m * 200 / 3)

    edges = to_hz(np.linspace(to_mel(f_min), to_mel(f_max), n_mels + 2))
    bins = np.linspace(0, rate / 2, n_fft // 2 + 1)
    rise = (bins[None, :] - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - bins[None, :]) / np.diff(edges)[1:, None]
    bank = np.maximum(0, np.minimum(rise, fall))
    if slaney_norm:
        bank *= (2 / (edges[2:] - edges[:-2]))[:, None]
    return bank


def whisper(x, frames, n_mels):
    """Whisper's log-mel window; [frames, n_mels]."""
    x = np.pad(x, (0, frames * 160 - len(x)))
    power = np.abs(stft(x, 400, 160, 400)[:-1]) ** 2
    mel = power @ mel_filters(16000, 400, n_mels, 0, 8000, False, True).T
    log = np.log10(np.maximum(mel, 1e-10))
    return (np.maximum(log, log.max() - 8) + 4) / 4


def numbers(a):
    return [float(f"{v:.8g}") for v in np.asarray(a).ravel()]


def main():
    stfts = []
    for case in [
        dict(n_fft=64, hop=16, win=64),
        dict(n_fft=64, hop=20, win=48, mode="constant", normalized=True, onesided=False),
        dict(n_fft=50, hop=10, win=50, center=False),
    ]:
        bins = stft(signal(200), **case)
        stfts.append(
            dict(
                n_fft=case["n_fft"],
                hop=case["hop"],
                win=case["win"],
                center=case.get("center", True),
                zeros=case.get("mode") == "constant",
                normalized=case.get("normalized", False),
                onesided=case.get("onesided", True),
                frames=bins.shape[0],
                re=numbers(bins.real),
                im=numbers(bins.imag),
            )
        )
    banks = []
    for args in [
        (16000, 400, 80, 0, 8000, False, True),
        (16000, 400, 128, 0, 8000, False, True),
        (22050, 1024, 40, 50, 7600, True, False),
        (24000, 512, 40, 0, 12000, True, True),
    ]:
        bank = mel_filters(*args)
        rows, bins = np.nonzero(bank)
        names = "rate n_fft n_mels f_min f_max htk slaney_norm".split()
        banks.append(
            dict(
                zip(names, args),
                rows=rows.tolist(),
                bins=bins.tolist(),
                weights=numbers(bank[rows, bins]),
            )
        )
    features = [
        dict(n_mels=80, frames=30, samples=4000, values=numbers(whisper(signal(4000), 30, 80))),
        dict(n_mels=128, frames=12, samples=1920, values=numbers(whisper(signal(1920), 12, 128))),
    ]
    OUT.write_text(json.dumps(dict(stft=stfts, banks=banks, whisper=features)) + "\n")
    print(OUT, OUT.stat().st_size, "bytes")


def check():
    from transformers import WhisperFeatureExtractor

    x = signal(48000)
    for n_mels in (80, 128):
        theirs = WhisperFeatureExtractor(feature_size=n_mels)(x, sampling_rate=16000)
        ours = whisper(x, 3000, n_mels)
        print(n_mels, "mels: worst difference", np.abs(theirs.input_features[0].T - ours).max())


if __name__ == "__main__":
    main()
    if "--check" in sys.argv:
        check()
