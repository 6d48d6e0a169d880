"""audiocpp_driver.py MODEL AUDIO THREADS WEIGHT_TYPE PROGRAM: transcribes with audiocpp_cli, greedily."""
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from report import peak_mib, report

model, audio, threads, weight_type, program = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    timing, out = Path(folder, "timing.json"), Path(folder, "out.txt")
    subprocess.run(
        [
            program, "transcribe", audio, "--model", model, "--language", "en", "--device", "cpu",
            "--threads", threads, "--weight-type", weight_type, "--beam-size", "1",
            "--temperature", "0", "--request-option", "temperature_fallback=false",
            "--request-option", "condition_on_previous_text=false",
            "--timing-json", timing, "--out", out,
        ],
        check=True,
    )
    times, text = json.loads(timing.read_text()), out.read_text()
version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)
settings = {
    "version": version.stdout.splitlines()[0],
    "weight_type": weight_type,
    "threads": int(threads),
    "decoding": "beam 1, temperature 0, no fallback, no VAD, no earlier text",
}
peak = peak_mib(resource.RUSAGE_CHILDREN)
report(times["load_seconds"], times["inputs"][0]["seconds"], " ".join(text.split()), settings, peak)
