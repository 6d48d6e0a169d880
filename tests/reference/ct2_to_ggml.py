"""Writes a whisper.cpp model file (f16) from a CTranslate2 folder, so that both run the same weights.

    ct2_to_ggml.py FOLDER OUT
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

import ct2
import whisper_weights

FFT, RATE = 400, 16000

# Hugging Face's parts of a name and whisper.cpp's.
RENAMES = {
    "model.": "",
    "embed_positions.weight": "positional_embedding",
    "embed_tokens": "token_embedding",
    "layers.": "blocks.",
    "encoder_attn_layer_norm": "cross_attn_ln",
    "self_attn_layer_norm": "attn_ln",
    "final_layer_norm": "mlp_ln",
    "encoder.layer_norm": "encoder.ln_post",
    "decoder.layer_norm": "decoder.ln",
    "encoder_attn": "cross_attn",
    "self_attn": "attn",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "out",
    "fc1": "mlp.0",
    "fc2": "mlp.2",
}


def mel_filters(count):
    """Slaney's mel filter bank [count, FFT / 2 + 1]: triangles of equal area, 0 Hz to RATE / 2."""
    # Linear below 1 kHz (15 mel), then 27 mel for each factor of 6.4.
    def hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))

    top = 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4)
    edges = hertz(np.linspace(0, top, count + 2))
    low, centre, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bins = np.linspace(0, RATE / 2, FFT // 2 + 1)
    triangles = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre))
    return np.maximum(triangles, 0) * 2 / (high - low)


def byte_of_character():
    """GPT-2's alphabet: the byte that each character of a vocabulary entry stands for."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def vocabulary(folder, count):
    """The first `count` tokens as bytes."""
    as_json, as_text = folder / "vocabulary.json", folder / "vocabulary.txt"
    if as_json.exists():
        entries = json.loads(as_json.read_text())
    else:
        entries = as_text.read_text().split("\n")
    alphabet = byte_of_character()
    return [bytes(alphabet[character] for character in entry) for entry in entries[:count]]


def rename(name):
    for old, new in RENAMES.items():
        name = name.replace(old, new)
    return name


def stored(name, array):
    """The array and type number in which whisper.cpp wants the tensor: matrices in f16."""
    if name.startswith("encoder.conv") and name.endswith("bias"):
        array = array[:, None]
    elif array.ndim > 1 and not name.endswith("positional_embedding"):
        return array.astype(np.float16), 1
    return array.astype(np.float32), 0


def convert(folder, out):
    variables = ct2.read(folder / "model.bin")
    sizes, generation = whisper_weights.config(folder, variables)
    width, mels = sizes["d_model"], sizes["num_mel_bins"]
    tokens = vocabulary(folder, generation["eos_token_id"])
    with open(out, "wb") as file:
        header = [
            0x67676D6C, sizes["vocab_size"],
            sizes["max_source_positions"], width, sizes["encoder_attention_heads"], sizes["encoder_layers"],
            sizes["max_target_positions"], width, sizes["decoder_attention_heads"], sizes["decoder_layers"],
            mels, 1,
        ]
        file.write(struct.pack(f"<{len(header)}i", *header))
        filters = mel_filters(mels).astype("<f4")
        file.write(struct.pack("<2i", *filters.shape) + filters.tobytes())
        file.write(struct.pack("<i", len(tokens)))
        for token in tokens:
            file.write(struct.pack("<i", len(token)) + token)
        for name, array in whisper_weights.state_dict(variables).items():
            if name == "proj_out.weight":  # the embedding once more
                continue
            name = rename(name)
            array, kind = stored(name, array)
            file.write(struct.pack("<3i", array.ndim, len(name), kind))
            file.write(struct.pack(f"<{array.ndim}i", *reversed(array.shape)))
            file.write(name.encode() + array.tobytes())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    convert(Path(sys.argv[1]), sys.argv[2])
