"""kokoro_driver.py MODEL_FOLDER THREADS: Kokoro in onnxruntime, as kokoro-onnx runs it.

Reads and writes the lines of `models/kokoro/examples/time.rs`. The chunks of a text are put together again and cut
as kokoro-onnx cuts them: sentences as many as the network takes at a time.
"""
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
from kokoro_onnx import Kokoro

folder = Path(sys.argv[1])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
options.inter_op_num_threads = 1
onnx = str(next(folder.glob("*.onnx")))
session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
kokoro = Kokoro.from_session(session, str(next(folder.glob("*.npz"))), vocab_config=str(folder / "vocab.json"))
style = kokoro.get_voice_style(sorted(kokoro.voices.files)[0])
for line in sys.stdin:
    text = " ".join(json.loads(line))
    start = time.perf_counter()
    first, samples = None, 0
    for phonemes in kokoro._split_phonemes(text):
        audio, rate = kokoro._create_audio(phonemes, style, 1.0)
        samples += audio.size
        first = first or time.perf_counter() - start
    done = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"first": first, "all": done, "sound": samples / rate, "peak_mib": peak}), flush=True)
