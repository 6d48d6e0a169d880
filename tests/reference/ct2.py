"""Reader of CTranslate2's `model.bin` (format version 6): numpy arrays by variable name."""
import struct
from pathlib import Path

import numpy as np

DTYPES = [np.float32, np.int8, np.int16, np.int32, np.float16]


class Cursor:
    """Little-endian fields of a byte string, one after the other."""

    def __init__(self, data):
        self.data, self.at = memoryview(data), 0

    def take(self, count):
        piece = self.data[self.at : self.at + count]
        if len(piece) != count:
            raise ValueError(f"file ends at byte {len(self.data)}, {count} more wanted at {self.at}")
        self.at += count
        return piece

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self):
        """A length in 16 bits that counts the closing zero byte, then the bytes."""
        return bytes(self.take(self.number("H"))[:-1]).decode()


def read(path):
    """All variables of the file at `path`; aliases share their target's array."""
    cursor = Cursor(Path(path).read_bytes())
    version = cursor.number("I")
    if version != 6:
        raise ValueError(f"{path}: binary version {version}, expected 6")
    cursor.text(), cursor.number("I")  # the model's kind and its revision
    variables = {}
    for _ in range(cursor.number("I")):
        name = cursor.text()
        shape = [cursor.number("I") for _ in range(cursor.number("B"))]
        dtype = DTYPES[cursor.number("B")]
        variables[name] = np.frombuffer(cursor.take(cursor.number("I")), dtype).reshape(shape)
    for _ in range(cursor.number("I")):
        alias, target = cursor.text(), cursor.text()
        variables[alias] = variables[target]
    return variables


def layers(variables, stack):
    """Number of layers of `stack`, "encoder" or "decoder"."""
    indices = [
        int(part.removeprefix("layer_"))
        for part in (name.split("/")[1] for name in variables if name.startswith(f"{stack}/layer_"))
        if part != "layer_norm"
    ]
    return max(indices) + 1
