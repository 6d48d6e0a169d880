"""listen_peer.py piper VOICE.onnx | kokoro MODEL.onnx VOICES.npz VOICE   OUT: other programs speak.

Reads a text a line and writes OUT/0.wav, OUT/1.wav, ... with each program's own settings.
"""
import sys
import wave
from pathlib import Path

import numpy as np

engine, *files, out = sys.argv[1:]
out = Path(out)
out.mkdir(parents=True, exist_ok=True)


def write(path, rate, samples):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


if engine == "piper":
    from piper import PiperVoice

    voice = PiperVoice.load(files[0])

    def speak(text):
        chunks = list(voice.synthesize(text))
        return chunks[0].sample_rate, np.concatenate([c.audio_float_array for c in chunks])
else:
    from kokoro_onnx import Kokoro

    kokoro = Kokoro(files[0], files[1])

    def speak(text):
        samples, rate = kokoro.create(text, voice=files[2], lang="en-us")
        return rate, samples


for number, text in enumerate(sys.stdin.read().splitlines()):
    write(out / f"{number}.wav", *speak(text))
