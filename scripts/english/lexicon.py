#!/usr/bin/env python3
"""Packs misaki's American English pronunciations into one small file.

    pip download --no-deps misaki==0.9.4 && unzip misaki-*.whl -d misaki
    python lexicon.py misaki/misaki/data lexicon.bin

The file holds two deflate streams, each after its length in 4 bytes: the words in byte order, one
a line, of which the first character says how many bytes are those of the word before (`!` is 0);
and their pronunciations, one a line, in misaki's symbols with one byte for each (the first line
lists them). Other parts of speech follow behind `|` with a letter of their own.
"""

import json
import re
import struct
import sys
import zlib

# Parts of speech: noun, verb, adjective, adverb, past, participle, present, determiner, and
# `X` at the end of a clause.
TAGS = {"DEFAULT": "", "NOUN": "N", "VERB": "V", "ADJ": "A", "ADV": "R", "VBD": "D", "VBN": "P",
        "VBP": "B", "DT": "T", "None": "X"}


def entries(folder):
    found = {}
    for name in ("us_silver.json", "us_gold.json"):
        for word, sounds in json.load(open(f"{folder}/{name}")).items():
            sounds = {"DEFAULT": sounds} if isinstance(sounds, str) else sounds
            sounds = {TAGS[tag]: sound for tag, sound in sounds.items() if sound}
            if sounds.get("") and re.fullmatch(r"[^\W\d_]['\w]*", word):
                found[word] = sounds
    return found


def main(folder, path):
    found = entries(folder)
    words, sounds, before = [], [], b""
    for word in sorted(found, key=str.encode):
        raw = word.encode()
        shared = 0
        while shared < min(len(raw), len(before), 80) and raw[shared] == before[shared]:
            shared += 1
        words.append(bytes([33 + shared]) + raw[shared:])
        before = raw
        variants = sorted(found[word].items())
        base = found[word][""]
        sounds.append("|".join(tag + sound for tag, sound in variants if not tag or sound != base))
    symbols = sorted({char for line in sounds for char in line if ord(char) > 127})
    code = {char: bytes([0x80 + i]) for i, char in enumerate(symbols)}
    pack = lambda text: b"".join(code.get(char) or char.encode() for char in text)
    streams = [b"\n".join(words), b"\n".join(["".join(symbols).encode()] + [pack(s) for s in sounds])]
    with open(path, "wb") as out:
        for stream in streams:
            packed = zlib.compress(stream, 9)
            out.write(struct.pack("<I", len(packed)) + packed)
    print(len(found), "words,", open(path, "rb").seek(0, 2), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
