"""Writes a click track in containers whose codecs begin with samples that are not to be heard.

    python tests/reference/click_tracks.py tests/data/spleeter

Needs numpy and av (PyAV). Clicks are bursts of 1 ms, every 12345 samples of 48 kHz from 5000 on, 3 s in all;
AAC has a priming before them that the edit list takes away, Opus a pre-skip.
"""
import sys
from pathlib import Path

import av
import numpy as np

RATE, COUNT = 48_000, 3 * 48_000
track = np.zeros(COUNT)
for start in range(5000, COUNT - 1000, 12345):
    t = np.arange(-96, 97)
    track[start - 96:start + 97] += 0.7 * np.exp(-(t / 24.0) ** 2) * np.cos(t * 2 * np.pi * 3000 / RATE)
samples = np.stack([track, track]).astype(np.float32)

for name, codec, rate in [("clicks.m4a", "aac", 96_000), ("clicks.webm", "libopus", 64_000)]:
    target = Path(sys.argv[1]) / name
    with av.open(str(target), "w") as container:
        stream = container.add_stream(codec, rate=RATE, layout="stereo")
        stream.bit_rate = rate
        kind = "fltp" if codec == "aac" else "flt"
        resampler = av.AudioResampler(format=stream.codec_context.format or kind, layout="stereo", rate=RATE)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), format="fltp", layout="stereo")
        frame.sample_rate = RATE
        frame.pts = 0
        for part in resampler.resample(frame) + resampler.resample(None):
            for packet in stream.encode(part):
                container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)
    print(name, target.stat().st_size)
