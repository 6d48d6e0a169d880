"""Times transformers' VibeVoice on made-up weights of the released size, beside `time.rs`.

    python models/vibevoice/examples/time.py 1.5b cuda bf16 [PROMPT [FRAMES [STEPS]]]

The script has PROMPT tokens (512), then FRAMES frames are made (75) with STEPS steps each (10); the
tokens are chosen, so that every step is a frame. Writes one line of JSON: seconds, real-time factor
and milliseconds a frame of the second run, the best of transformers' ways: eager, and on CUDA also a
static cache, which makes it compile the language model.

Needs transformers 5.24, diffusers and torch.
"""
import json
import sys
import time

import torch
import transformers.models.vibevoice.generation_vibevoice as generation
from transformers import VibeVoiceConfig, VibeVoiceForConditionalGeneration

SIZES = {
    "1.5b": dict(hidden_size=1536, num_hidden_layers=28, num_attention_heads=12, num_key_value_heads=2,
                 intermediate_size=8960, vocab_size=151936),
    "7b": dict(hidden_size=3584, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4,
               intermediate_size=18944, vocab_size=152064),
    "tiny": dict(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
                 intermediate_size=512, vocab_size=151936),
}
HOP, RATE = 3200, 24000


class Frames:
    """A logits processor that always chooses a frame, and after `count` of them the end."""

    def __init__(self, count, frame, end):
        self.left, self.frame, self.end = count, frame, end

    def __call__(self, ids, scores):
        self.left -= 1
        chosen = torch.full_like(scores, float("-inf"))
        chosen[:, self.frame if self.left >= 0 else self.end] = 0
        return chosen


def model_of(size, device, dtype):
    text = dict(model_type="qwen2", max_position_embeddings=65536, rope_theta=1e6, tie_word_embeddings=True)
    filters = 4 if size == "tiny" else 32
    config = VibeVoiceConfig(
        text_config={**SIZES[size], **text},
        audio_config=dict(model_type="vibevoice_acoustic_tokenizer", hidden_size=64, num_filters=filters),
        semantic_model_config=dict(
            model_type="vibevoice_acoustic_tokenizer_encoder", hidden_size=128, num_filters=filters),
        diffusion_head_config=dict(num_hidden_layers=4, intermediate_size=3 * SIZES[size]["hidden_size"]),
    )
    torch.set_default_dtype(dtype)
    with torch.device(device):
        model = VibeVoiceForConditionalGeneration(config).eval()
    torch.set_default_dtype(torch.float32)
    model.model.latent_scaling_factor.data.fill_(0.2)
    model.model.latent_bias_factor.data.fill_(-0.05)
    return model, config


def main():
    size, device, dtype = sys.argv[1:4]
    prompt, frames, steps = [int(a) for a in sys.argv[4:7]] + [512, 75, 10][len(sys.argv[4:7]):]
    dtype = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)[dtype]
    torch.set_grad_enabled(False)
    model, config = model_of(size, device, dtype)
    ids = (torch.arange(prompt, device=device) * 31 % 500)[None]
    ids[0, -1] = config.audio_bos_token_id
    found = {}
    for way in ["eager"] + (["static"] if device.startswith("cuda") else []):
        options = dict(cache_implementation="static") if way == "static" else {}
        try:
            for _ in range(2):
                chooser = Frames(frames, config.audio_token_id, config.eos_token_id)
                generation.VibeVoiceTokenConstraintProcessor = lambda *_, **__: chooser
                if device.startswith("cuda"):
                    torch.cuda.synchronize()
                begun = time.perf_counter()
                model.generate(
                    input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=frames + 1,
                    guidance_scale=1.3, num_diffusion_steps=steps, do_sample=False, **options)
                if device.startswith("cuda"):
                    torch.cuda.synchronize()
                found[way] = time.perf_counter() - begun
        except Exception as error:  # a way that this machine does not have
            found.pop(way, None)
            print(f"{way}: {error}", file=sys.stderr)
    way = min(found, key=found.get)
    print(json.dumps(dict(
        size=size, device=device, weights=str(dtype), way=way, ways=found, prompt=prompt, frames=frames,
        steps=steps, seconds=found[way], frame_ms=found[way] / frames * 1e3,
        real_time_factor=found[way] / (frames * HOP / RATE), threads=torch.get_num_threads())))


if __name__ == "__main__":
    main()
