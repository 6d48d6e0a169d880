"""clips.py SPEECH OUT: 16 kHz WAV files of the speech samples, short to long, and what is said.

jfk.wav is one clip of 11 s, novel.wav five sentences in 25 s, long.wav all of them again and again
for 10 minutes. OUT/clips.json lists name, seconds and text.
"""
import json
import sys
from pathlib import Path

import numpy as np
import soundfile

RATE = 16000
LONG_SECONDS = 600


def main(speech, out):
    known = json.loads((speech / "transcripts.json").read_text())
    parts = []
    for clip in known:
        samples, rate = soundfile.read(speech / clip["file"], dtype="int16")
        assert rate == RATE, clip["file"]
        parts.append((samples, clip["text"]))
    seconds = sum(len(samples) for samples, _ in parts) / RATE
    recordings = {
        "jfk": parts[:1],
        "novel": parts[1:],
        "long": parts * round(LONG_SECONDS / seconds),
    }
    listed = []
    for name, pieces in recordings.items():
        samples = np.concatenate([samples for samples, _ in pieces])
        soundfile.write(out / f"{name}.wav", samples, RATE, subtype="PCM_16")
        text = " ".join(text for _, text in pieces)
        listed.append({"name": name, "seconds": len(samples) / RATE, "text": text})
    (out / "clips.json").write_text(json.dumps(listed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
