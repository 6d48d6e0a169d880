"""listen_score.py TEXTS NAME=WAVS:READ ...: how well speech is understood, and how clean it is.

TEXTS has a text a line, WAVS its recordings 0.wav, 1.wav, ..., READ what a recogniser made of them
(0.txt, 1.txt, ...). Prints JSON: word error rate after Whisper's normalisation of English, texts with an
error, and the mean DNSMOS P.835 scores of the recordings.
"""
import importlib.util
import json
import sys
import wave
from pathlib import Path

import jiwer
import numpy as np
import onnxruntime
from scipy.signal import resample_poly
from whisper_normalizer.english import EnglishTextNormalizer

RATE = 16000
WINDOW = 144160  # samples that the network takes
# The published map from the network's outputs to opinion scores, highest power first.
SCALES = {
    "sig": (-0.08397278, 1.22083953, 0.0052439),
    "bak": (-0.13166888, 1.60915514, -0.39604546),
    "ovr": (-0.06766283, 1.11546468, 0.04602535),
}

package = Path(importlib.util.find_spec("speechmos").submodule_search_locations[0])
session = onnxruntime.InferenceSession(str(next(package.rglob("sig_bak_ovr.onnx"))),
                                       providers=["CPUExecutionProvider"])
plain = EnglishTextNormalizer()


def dnsmos(path):
    with wave.open(str(path)) as file:
        rate = file.getframerate()
        sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
    sound = resample_poly(sound, RATE, rate).astype(np.float32)
    sound = np.tile(sound, -(-WINDOW // len(sound))) if len(sound) < WINDOW else sound
    windows = [sound[at:at + WINDOW] for at in range(0, len(sound) - WINDOW + 1, RATE)]
    raw = [session.run(None, {session.get_inputs()[0].name: w[None]})[0][0] for w in windows]
    means = np.mean(raw, axis=0)
    return [float(np.polyval(scale, value)) for scale, value in zip(SCALES.values(), means)]


texts = Path(sys.argv[1]).read_text().splitlines()
found = {}
for argument in sys.argv[2:]:
    name, folders = argument.split("=", 1)
    sound, read = map(Path, folders.rsplit(":", 1))
    heard = [(read / f"{i}.txt").read_text() for i in range(len(texts))]
    pairs = [(plain(a), plain(b)) for a, b in zip(texts, heard)]
    scores = np.mean([dnsmos(sound / f"{i}.wav") for i in range(len(texts))], axis=0)
    found[name] = {
        "wer": jiwer.wer([a for a, _ in pairs], [b for _, b in pairs]),
        "wrong": [[a, b] for a, b in pairs if a != b],
        **dict(zip(SCALES, map(float, scores))),
    }
print(json.dumps(found))
