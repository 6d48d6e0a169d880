"""vad_labels.py OUT: a recording with labelled speech from the wheel pyannote-audio (MIT) into OUT.

30 s of a meeting, sample.wav, and who speaks when, sample.rttm.
"""
import subprocess
import sys
import zipfile
from pathlib import Path

WHEEL = "pyannote-audio==4.0.7"

out = Path(sys.argv[1])
pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(out), WHEEL]
subprocess.run(pip, check=True)
(wheel,) = out.glob("pyannote*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in ("sample.wav", "sample.rttm"):
        (out / name).write_bytes(archive.read(f"pyannote/audio/sample/{name}"))
wheel.unlink()
