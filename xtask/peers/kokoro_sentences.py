"""kokoro_sentences.py MODEL_FOLDER OUT.jsonl: the texts as Kokoro's phonemes.

A line for each text: a list of chunks, sentences joined up to 300 phonemes, those of the first up to
150, as this engine does it.
"""
import json
import re
import sys
from pathlib import Path

from kokoro_onnx.tokenizer import Tokenizer
from texts import TEXTS

FIRST, JOINED = 150, 300

vocab = json.loads((Path(sys.argv[1]) / "vocab.json").read_text())["vocab"]
tokenizer = Tokenizer(None, vocab=vocab)
with open(sys.argv[2], "w") as out:
    for text in TEXTS:
        chunks = []
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            phonemes = tokenizer.phonemize(sentence, "en-us").strip()
            room = FIRST if len(chunks) == 1 else JOINED
            if chunks and len(chunks[-1]) + 1 + len(phonemes) <= room:
                chunks[-1] += " " + phonemes
            else:
                chunks.append(phonemes)
        out.write(json.dumps(chunks) + "\n")
