"""Whisper large-v3-turbo beside transformers: makes the checkpoint, times the reference.

    python3 whisper_forced.py make DIR       a float16 checkpoint with formula weights (1.6 GB)
    python3 whisper_forced.py time DIR [N]   encoder, and N tokens of greedy decoding, as JSON

`cargo run --release -p audiocpp-whisper --example forced -- DIR DEVICE N` is the other side.
"""
import inspect
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from formula_weights import tensor
from transformers import WhisperConfig, WhisperForConditionalGeneration

TURBO = dict(
    d_model=1280, encoder_layers=32, decoder_layers=4, encoder_attention_heads=20,
    decoder_attention_heads=20, encoder_ffn_dim=5120, decoder_ffn_dim=5120, num_mel_bins=128,
    vocab_size=51866, max_source_positions=1500, max_target_positions=448,
)
RUNS = 5


def make(folder):
    with torch.device("meta"):
        model = WhisperForConditionalGeneration(WhisperConfig(**TURBO))
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    shapes.pop("proj_out.weight", None)  # tied to the token embedding
    with ThreadPoolExecutor() as pool:
        halves = pool.map(lambda item: (item[0], tensor(*item).astype(np.float16)), shapes.items())
        state = {name: torch.from_numpy(value) for name, value in halves}
    model = WhisperForConditionalGeneration(WhisperConfig(**TURBO)).half()
    model.load_state_dict(state, strict=False)
    model.save_pretrained(folder)


def best(run):
    times = []
    for _ in range(RUNS):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return 1e3 * min(times)


@torch.inference_mode()
def measure(folder, tokens):
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float16).cuda().eval()
    mel = torch.sin(torch.arange(128 * 3000, device="cuda") * 0.37).reshape(1, 128, 3000).half()
    prompt = torch.tensor([[2, 3, 4, 5]], device="cuda")
    encoder = model.get_encoder()
    # Renamed in transformers 5.24.
    cache = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    def decode():
        """Forced length, greedy, with the cache that the library makes by default."""
        hidden = encoder(mel).last_hidden_state
        past, ids = None, prompt
        for _ in range(tokens):
            out = model(encoder_outputs=(hidden,), decoder_input_ids=ids, use_cache=True,
                        **{cache: past})
            past = out.past_key_values
            ids = out.logits[:, -1:].argmax(-1)
        return ids

    copy = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(copy)
    print(json.dumps({
        "device": torch.cuda.get_device_name(), "tokens": tokens,
        "encode_ms": best(lambda: encoder(mel)), "total_ms": best(decode),
        "copy_bandwidth_gb_s": 2 * (1 << 30) / best(lambda: other.copy_(copy)) / 1e6,
        "decoder_bytes": sum(p.numel() * 2 for p in model.model.decoder.parameters()),
    }))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        measure(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 100)
