"""demucs_segments.py MODEL.safetensors [DEVICE] [TYPE] [SEGMENTS]: PyTorch's demucs on a batch of segments.

Writes the lines of `models/demucs/examples/segments.rs`; TYPE is f32 or f16 (by autocast, as the transform
of demucs takes no half precision).
"""
import json
import sys
import time

import torch
from demucs.hf import load_safetensors_model

words = sys.argv[1:] + [None] * 4
device, kind, segments = words[1] or "cuda", words[2] or "f16", int(words[3] or 8)
model = load_safetensors_model(words[0]).eval().to(device)
count = int(model.segment * model.samplerate)
mix = torch.randn(segments, 2, count, device=device)
for _ in range(5):
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.no_grad(), torch.autocast(device.split(":")[0], torch.float16, enabled=kind == "f16"):
        model(mix)
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    wall = time.perf_counter() - start
    print(json.dumps({"segments": segments, "wall": wall,
                      "real_time": wall * model.samplerate / (segments * count)}), flush=True)
