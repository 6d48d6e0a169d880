"""piper_sentences.py VOICE.onnx OUT.jsonl: the texts as symbol numbers.

A line for each text: a list of sentences, each a list of numbers, as the piper program makes them.
"""
import json
import sys

from piper import PiperVoice
from texts import TEXTS

voice = PiperVoice.load(sys.argv[1])
with open(sys.argv[2], "w") as out:
    for text in TEXTS:
        sentences = [voice.phonemes_to_ids(phonemes) for phonemes in voice.phonemize(text)]
        out.write(json.dumps(sentences) + "\n")
