"""whisper_cpp_driver.py MODEL AUDIO THREADS: transcribes with whisper.cpp, greedily."""
import sys
import time
from importlib.metadata import version

from pywhispercpp.model import Model

from report import report

model_path, audio, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
start = time.perf_counter()
model = Model(model_path, n_threads=threads, print_progress=False, redirect_whispercpp_logs_to=None)
loaded = time.perf_counter()
segments = model.transcribe(audio, language="en", temperature=0.0, temperature_inc=0.0)
text = " ".join(segment.text.strip() for segment in segments)
done = time.perf_counter()
settings = {
    "version": f"pywhispercpp {version('pywhispercpp')}",
    "cpu": Model.system_info(),
    "threads": threads,
    "decoding": "greedy, temperature 0, no fallback, no VAD, no earlier text (its default)",
}
report(loaded - start, done - loaded, text, settings)
