#!/usr/bin/env python3
"""Trains the network that guesses how an unknown English word sounds.

    pip download --no-deps misaki==0.9.4 && unzip misaki-*.whl -d misaki
    python letters_to_sounds.py misaki/misaki/data letters.bin     # needs torch

Every letter of a word is aligned with the sounds that it stands for (none, one or a few), and a
small convolutional network learns to predict them from the letters around. Its weights are stored
as 8-bit integers with one scale for each output channel. One word in twenty is held out; the
script prints how often these come out right.
"""

import collections
import hashlib
import json
import math
import random
import re
import struct
import sys

import torch
from torch import nn

LETTERS = "abcdefghijklmnopqrstuvwxyz'"
VOWELS = set("æɑɔəɛɜɪiuʊʌᵻᵊAIOWY")
STRESS = {"ˈ": 1, "ˌ": 2}
CHANNELS, KERNEL, DILATIONS = 112, 5, (1, 1, 2, 2, 1, 1)
LONGEST_CHUNK = 3
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def words(folder):
    """Word -> sounds, of all plain words; the reviewed list has the last word."""
    found = {}
    for name in ("us_silver.json", "us_gold.json"):
        for word, sound in json.load(open(f"{folder}/{name}")).items():
            sound = sound if isinstance(sound, str) else sound.get("DEFAULT")
            if sound and re.fullmatch(r"[a-z][a-z']+", word) and word_fits(word, sound):
                found[word] = sound
    return found


def word_fits(word, sound):
    """Whether letters can stand for the sounds: spelled-out abbreviations are left out."""
    return len(re.sub("[ˈˌ]", "", sound)) <= 1.6 * len(word) and len(word) < 24


def units(sound):
    """Sounds with their stress: [(sound, 0 none | 1 main | 2 second)]."""
    out, stress = [], 0
    for char in sound:
        if char in STRESS:
            stress = STRESS[char]
        else:
            out.append((char, stress))
            stress = 0
    return out


def align(word, sounds, score):
    """Best split of `sounds` over the letters: a chunk for each letter."""
    n, m = len(word), len(sounds)
    best = [[-math.inf] * (m + 1) for _ in range(n + 1)]
    back = [[0] * (m + 1) for _ in range(n + 1)]
    best[0][0] = 0.0
    for i, letter in enumerate(word):
        row, nxt = best[i], best[i + 1]
        for j in range(m + 1):
            if row[j] == -math.inf:
                continue
            for k in range(min(LONGEST_CHUNK, m - j) + 1):
                value = row[j] + score(letter, sounds[j : j + k])
                if value > nxt[j + k]:
                    nxt[j + k] = value
                    back[i + 1][j + k] = k
    if best[n][m] == -math.inf:
        return None
    chunks, j = [], m
    for i in range(n, 0, -1):
        k = back[i][j]
        chunks.append(sounds[j - k : j])
        j -= k
    return chunks[::-1]


# Where nothing is known yet, vowels stand for vowels and consonants for consonants.
def first_score(letter, chunk):
    if not chunk:
        return -2.5
    vowel = letter in "aeiouy"
    wrong = sum((sound in VOWELS) != vowel for sound in chunk)
    return -1.0 - 2.0 * wrong - 2.5 * (len(chunk) - 1)


def aligned(lexicon, rounds=4, sample=30000):
    items = [(word, tuple(s for s, _ in units(sound))) for word, sound in lexicon.items()]
    score = first_score
    shuffled = items[:]
    random.Random(1).shuffle(shuffled)
    for _ in range(rounds):
        counts = collections.Counter()
        for word, sounds in shuffled[:sample]:
            chunks = align(word, sounds, score)
            counts.update(zip(word, chunks or []))
        totals = collections.Counter()
        for (letter, _), n in counts.items():
            totals[letter] += n
        table = {pair: math.log(n / totals[pair[0]]) for pair, n in counts.items() if n > 2}
        score = lambda letter, chunk, table=table: table.get((letter, chunk), -18.0 - 4 * len(chunk))
    return {word: align(word, sounds, score) for word, sounds in items}


class Net(nn.Module):
    def __init__(self, chunks):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS) + 1, CHANNELS)
        self.layers = nn.ModuleList(
            nn.Conv1d(CHANNELS, CHANNELS, KERNEL, dilation=d, padding=d * (KERNEL // 2)) for d in DILATIONS
        )
        self.out = nn.Linear(CHANNELS, chunks + 3)
        self.drop = nn.Dropout(0.1)

    def forward(self, ids, mask):  # [b, t] -> [b, t, chunks + 3]
        x = self.embed(ids).transpose(1, 2) * mask
        for layer in self.layers:
            x = (x + self.drop(torch.relu(layer(x)))) * mask
        return self.out(x.transpose(1, 2))


def batch(items, chunk_ids):
    t = max(len(word) for word, _, _ in items)
    ids = torch.zeros(len(items), t, dtype=torch.long)
    chunk = torch.full((len(items), t), -1)
    stress = torch.full((len(items), t), -1)
    for row, (word, chunks, marks) in enumerate(items):
        ids[row, : len(word)] = torch.tensor([LETTERS.index(c) + 1 for c in word])
        chunk[row, : len(word)] = torch.tensor([chunk_ids.get(c, -1) for c in chunks])
        stress[row, : len(word)] = torch.tensor(marks)
    return ids, (ids > 0).float().unsqueeze(1), chunk, stress


def prepared(lexicon, alignment):
    """(word, chunk of every letter, stress of every letter)."""
    out = []
    for word, chunks in alignment.items():
        if chunks is None:
            continue
        rest = units(lexicon[word])
        marks = []
        for chunk in chunks:
            part, rest = rest[: len(chunk)], rest[len(chunk) :]
            marks.append(max((s for _, s in part), default=0))
        out.append((word, chunks, marks))
    return out


def decode(word, logits, chunks):
    """The sounds that the network's scores mean: one main stress, on a letter with a vowel."""
    picked = [chunks[i] for i in logits[: len(word), :-3].argmax(-1).tolist()]
    stress = logits[: len(word), -3:].log_softmax(-1)
    vowels = [i for i, chunk in enumerate(picked) if any(s in VOWELS for s in chunk)]
    main = max(vowels, key=lambda i: stress[i, 1].item(), default=None)
    out = ""
    for i, chunk in enumerate(picked):
        mark = ""
        if i == main:
            mark = "ˈ"
        elif i in vowels and stress[i, 2] > max(stress[i, 0], stress[i, 1]):
            mark = "ˌ"
        for sound in chunk:
            if mark and sound in VOWELS:
                out += mark
                mark = ""
            out += sound
    return out


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            last, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, last + (x != y))
    return row[-1]


def measure(net, items, lexicon, chunks):
    net.eval()
    wrong = wrong_plain = errors = total = 0
    plain = lambda sound: re.sub("[ˈˌ]", "", sound)
    with torch.no_grad():
        for start in range(0, len(items), 512):
            part = items[start : start + 512]
            ids, mask, _, _ = batch(part, {})
            for (word, _, _), logits in zip(part, net(ids.to(DEVICE), mask.to(DEVICE)).cpu()):
                found, wanted = decode(word, logits, chunks), lexicon[word]
                wrong += found != wanted
                wrong_plain += plain(found) != plain(wanted)
                errors += edits(plain(found), plain(wanted))
                total += len(plain(wanted))
    n = len(items)
    return f"words right {1 - wrong / n:.4f}, without stress {1 - wrong_plain / n:.4f}, phoneme error rate {errors / total:.4f} ({n} words)"


def quantized(weight):
    """[out, ...] as i8 with a scale for each output channel."""
    flat = weight.detach().reshape(weight.shape[0], -1)
    scale = flat.abs().amax(1).clamp(min=1e-8) / 127
    return (flat / scale[:, None]).round().to(torch.int8), scale


def store(net, chunks, path):
    """Header, chunk names, then each matrix as scales, biases and 8-bit rows."""
    out = bytearray(b"L2S1" + struct.pack("<4H", CHANNELS, KERNEL, len(DILATIONS), len(chunks)))
    out += bytes(DILATIONS)
    for chunk in chunks:
        name = "".join(chunk).encode()
        out += bytes([len(name)]) + name
    with torch.no_grad():
        matrices = [(net.embed.weight, None)]
        matrices += [(l.weight, l.bias) for l in net.layers] + [(net.out.weight, net.out.bias)]
        for weight, bias in matrices:
            rows, scale = quantized(weight)
            out += scale.numpy().astype("<f4").tobytes()
            if bias is not None:
                out += bias.numpy().astype("<f4").tobytes()
            out += rows.numpy().tobytes()
            weight.copy_((rows * scale[:, None]).reshape(weight.shape))
    open(path, "wb").write(out)
    print(len(out), "bytes")


def held_out(word):
    return hashlib.sha256(word.encode()).digest()[0] % 20 == 0


def main(folder, path, epochs=40):
    torch.manual_seed(1)
    lexicon = words(folder)
    items = prepared(lexicon, aligned(lexicon))
    counts = collections.Counter(chunk for _, chunks, _ in items for chunk in chunks)
    chunks = [chunk for chunk, n in counts.most_common() if n >= 20]
    chunk_ids = {chunk: i for i, chunk in enumerate(chunks)}
    print(len(items), "words aligned of", len(lexicon), "with", len(chunks), "chunks", flush=True)
    test = [item for item in items if held_out(item[0])]
    train = [item for item in items if not held_out(item[0])]
    net = Net(len(chunks)).to(DEVICE)
    print(sum(p.numel() for p in net.parameters()), "parameters", flush=True)
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-4)
    steps = epochs * (len(train) // 256)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    loss = nn.CrossEntropyLoss(ignore_index=-1)
    for epoch in range(epochs):
        net.train()
        random.Random(epoch).shuffle(train)
        total = 0.0
        for start in range(0, len(train) - 255, 256):
            ids, mask, chunk, stress = (t.to(DEVICE) for t in batch(train[start : start + 256], chunk_ids))
            logits = net(ids, mask)
            value = loss(logits[..., :-3].flatten(0, 1), chunk.flatten())
            value = value + loss(logits[..., -3:].flatten(0, 1), stress.flatten())
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
            total += value.item()
        print(f"epoch {epoch} loss {total / (len(train) // 256):.4f} {measure(net, test[:2000], lexicon, chunks)}", flush=True)
    store(net.cpu(), chunks, path)
    net.to(DEVICE)
    print("held out:", measure(net, test, lexicon, chunks))


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
