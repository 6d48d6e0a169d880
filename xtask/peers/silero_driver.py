"""silero_driver.py MODEL.onnx RECORDING THREADS: Silero VAD in onnxruntime, frame by frame as its package runs it.

Prints one line of JSON: seconds from the path of the recording to its probabilities, and peak memory.
"""
import json
import sys
import time

import numpy as np
import onnxruntime
import soundfile

from report import peak_mib

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
start = time.perf_counter()
samples, rate = soundfile.read(sys.argv[2], dtype="float32")
assert rate == 16000
samples = np.pad(samples, (64, -len(samples) % 512))
state, sr, speech = np.zeros((2, 1, 128), np.float32), np.array(rate, np.int64), 0
for at in range(0, len(samples) - 64, 512):
    given = {"input": samples[None, at : at + 576], "state": state, "sr": sr}
    probability, state = session.run(None, given)
    speech += probability[0, 0] >= 0.5
print(json.dumps({"seconds": time.perf_counter() - start, "speech": int(speech), "peak_mib": peak_mib()}))
