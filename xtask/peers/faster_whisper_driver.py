"""faster_whisper_driver.py MODEL AUDIO THREADS: transcribes with faster-whisper in int8, greedily."""
import sys
import time
from importlib.metadata import version

import ctranslate2
from faster_whisper import WhisperModel

from report import report

model_path, audio, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
start = time.perf_counter()
model = WhisperModel(model_path, device="cpu", compute_type="int8", cpu_threads=threads)
loaded = time.perf_counter()
segments, _ = model.transcribe(audio, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False)
text = " ".join(segment.text.strip() for segment in segments)
done = time.perf_counter()
settings = {
    "version": f"faster-whisper {version('faster-whisper')}, ctranslate2 {ctranslate2.__version__}",
    "compute_type": model.model.compute_type,
    "threads": threads,
    "decoding": "beam 1, temperature 0, no fallback, no VAD, no earlier text",
}
report(loaded - start, done - loaded, text, settings)
