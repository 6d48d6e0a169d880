"""demucs_driver.py MODEL.safetensors CLIP.wav THREADS: PyTorch's demucs on a recording, twice.

Writes the lines of `models/demucs/examples/time.rs`.
"""
import json
import resource
import sys
import time
import wave

import numpy as np
import torch
from demucs.apply import apply_model
from demucs.hf import load_safetensors_model

torch.set_num_threads(int(sys.argv[3]))
model = load_safetensors_model(sys.argv[1]).eval()
with wave.open(sys.argv[2]) as file:
    rate = file.getframerate()
    samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).reshape(-1, 2)
for _ in range(2):
    start = time.perf_counter()
    mix = torch.from_numpy(samples.astype(np.float32).T.copy() / 32768)
    mono = mix.mean(0)
    mean, deviation = mono.mean(), mono.std() + 1e-8
    with torch.no_grad():
        stems = apply_model(model, ((mix - mean) / deviation)[None], shifts=0) * deviation + mean
    wall = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"wall": wall, "sound": len(samples) / rate, "peak_mib": peak}), flush=True)
