"""piper_driver.py VOICE.onnx THREADS: the network of a Piper voice in onnxruntime, as the piper program runs it.

Reads and writes the lines of `models/piper/examples/time.rs`: a text a line as sentences of symbol numbers.
"""
import json
import resource
import sys
import time

import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
with open(sys.argv[1] + ".json") as file:
    config = json.load(file)
own = config["inference"]
scales = np.array([own["noise_scale"], own["length_scale"], own["noise_w"]], np.float32)
rate = config["audio"]["sample_rate"]
for line in sys.stdin:
    start = time.perf_counter()
    first, samples = None, 0
    for numbers in json.loads(line):
        ids = np.array([numbers], np.int64)
        given = {"input": ids, "input_lengths": np.array([ids.shape[1]], np.int64), "scales": scales}
        samples += session.run(None, given)[0].size
        first = first or time.perf_counter() - start
    done = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"first": first, "all": done, "sound": samples / rate, "peak_mib": peak}), flush=True)
