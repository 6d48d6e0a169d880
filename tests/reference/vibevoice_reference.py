"""Runs VibeVoice's own code (PyPI vibevoice 0.0.1) and transformers' port of it on formula weights,
and stores what every stage gives.

    python tests/reference/vibevoice_reference.py original tests/data/vibevoice
    python tests/reference/vibevoice_reference.py hf tests/data/vibevoice
    python tests/reference/vibevoice_reference.py asr tests/data/vibevoice
    python tests/reference/vibevoice_reference.py schedule tests/data/vibevoice

Each writes NAME/{config.json, layout.json, overrides.json, expected.safetensors}: the configuration,
names and shapes of all tensors, values of the scalars that are not formula values, and the stages of a
tiny network: both encoders, the decoder (whole, and frame by frame), the diffusion head, a prefill, and
the whole loop with chosen tokens and noise (`unit("noise.N", ...)`), so that no step depends on which
of two random scores is the larger; `asr` what VibeVoice-ASR hears of a sound in pieces, scores after a
prompt and after more tokens one by one. `schedule` writes schedule.json, the solver's steps on a fixed
function.

`original` needs vibevoice 0.0.1 and transformers 4.51; `hf`, `asr` and `schedule` need transformers 5.24 and
diffusers. Both need numpy, safetensors and torch.
"""
import json
import math
import sys
from pathlib import Path

import torch
from formula_weights import fill, unit
from safetensors.torch import save_file

torch.set_num_threads(2)
torch.set_grad_enabled(False)

LATENT, SEMANTIC, WIDTH, HOP = 16, 24, 64, 3200
START, END, DIFFUSION, EOS = 501, 502, 503, 500
STEPS, SCALE = 5, 1.5
SCALARS = dict(scaling=0.4, bias=-0.05)
# What the language model is made to say. Only the original empties the tokenizers at END.
SAID = dict(
    original=[DIFFUSION] * 3 + [END, START] + [DIFFUSION] * 2 + [EOS],
    hf=[DIFFUSION] * 4 + [START] + [DIFFUSION] * 2 + [EOS],
)
TOKENIZER = dict(encoder_n_filters=4, encoder_ratios=[8, 5, 5, 4, 2, 2], encoder_depths="1-1-1-1-1-1-2")
PORT = dict(num_filters=4, downsampling_ratios=[2, 2, 4, 5, 5, 8], depths=[1, 1, 1, 1, 1, 1, 2])
TEXT = dict(
    model_type="qwen2", hidden_size=WIDTH, intermediate_size=96, num_hidden_layers=3,
    num_attention_heads=4, num_key_value_heads=2, vocab_size=512, max_position_embeddings=2048,
    rope_theta=1e6, tie_word_embeddings=True,
)


def values(name, *shape):
    return torch.from_numpy(unit(name, math.prod(shape))).reshape(shape)


def prompt():
    """Ids with three frames of a voice."""
    ids = [(7 * i * i + 3 * i) % 499 for i in range(24)]
    ids[4:9] = [START, DIFFUSION, DIFFUSION, DIFFUSION, END]
    ids[-1] = START
    return torch.tensor([ids])


def noise_source(randn):
    """`torch.randn` that gives the noise of frame after frame."""
    frame = iter(range(1000))

    def drawn(*shape, **_):
        assert shape == (2, LATENT), shape
        return values(f"noise.{next(frame)}", 2, LATENT) * 1.7
    return drawn


class Said:
    """A logits processor that keeps the scores of the four tokens and then chooses."""

    def __init__(self, tokens):
        self.tokens, self.scores = iter(tokens), []

    def __call__(self, ids, scores):
        self.scores.append(scores[0, [START, END, DIFFUSION, EOS]].clone())
        forced = torch.full_like(scores, float("-inf"))
        forced[0, next(self.tokens)] = 0
        return forced


def sampled_by(torch_like, shape):
    """The noise of a voice's latents after torch.manual_seed(5): [batch, time, latent]."""
    torch.manual_seed(5)
    scale = 0.625 * torch.randn(shape[0])
    # As the encoder leaves it: time is the last axis of the memory.
    like = torch.zeros(shape[0], shape[2], shape[1]).permute(0, 2, 1)
    return scale[:, None, None] * torch.randn_like(like)


def write(folder, config, layout, scalars, expected):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    lines = ",\n".join(f" {json.dumps(name)}: {list(shape)}" for name, shape in sorted(layout.items()))
    (folder / "layout.json").write_text("{\n" + lines + "\n}\n")
    (folder / "overrides.json").write_text(json.dumps(scalars, indent=1))
    kept = {k: v.detach().float().contiguous().clone() for k, v in expected.items()}
    save_file(kept, folder / "expected.safetensors")
    for name, value in kept.items():
        print(f"{name:20} {tuple(value.shape)} rms {value.square().mean().sqrt():.4f}")


def original(data):
    import vibevoice.modular.modeling_vibevoice_inference as code
    from vibevoice.modular.configuration_vibevoice import VibeVoiceConfig
    from vibevoice.modular.modular_vibevoice_tokenizer import (
        VibeVoiceTokenizerEncoderOutput, VibeVoiceTokenizerStreamingCache)

    config = VibeVoiceConfig(
        acoustic_tokenizer_config=dict(vae_dim=LATENT, decoder_n_filters=4, **TOKENIZER),
        semantic_tokenizer_config=dict(vae_dim=SEMANTIC, **TOKENIZER),
        decoder_config=TEXT,
        diffusion_head_config=dict(
            hidden_size=WIDTH, head_layers=2, head_ffn_ratio=3.0, latent_size=LATENT, speech_vae_dim=LATENT),
    )
    config._attn_implementation = "eager"
    model = fill(code.VibeVoiceForConditionalGenerationInference(config).float())
    inner = model.model
    inner.speech_scaling_factor.fill_(SCALARS["scaling"])
    inner.speech_bias_factor.fill_(SCALARS["bias"])
    model.tie_weights()
    layout = {name: value.shape for name, value in model.state_dict().items() if value.is_floating_point()}
    layout.pop("lm_head.weight")

    wave = values("wave", 1, 3 * HOP) * 0.3
    latents = values("latents", 1, 4, LATENT) * 2
    acoustic, semantic, head = inner.acoustic_tokenizer, inner.semantic_tokenizer, inner.prediction_head
    expected = dict(
        acoustic=acoustic.encode(wave[:, None]).mean,
        semantic=semantic.encode(wave[:, None]).mean,
        decoded=acoustic.decode(latents),
        head=head(values("head.x", 2, LATENT), torch.tensor([799.0, 20.0]), condition=values("head.c", 2, WIDTH)),
    )
    cache = VibeVoiceTokenizerStreamingCache()
    index = torch.tensor([0])
    frames = [acoustic.decode(latents[:, i : i + 1], cache=cache, sample_indices=index, use_cache=True) for i in range(4)]
    expected["streamed"] = torch.cat(frames, -1)
    expected["voice_noise"] = sampled_by(None, (2, 3, LATENT))
    ids = prompt()
    embeddings = model.get_input_embeddings()(ids).clone()
    embeddings[0, 5:8] = inner.acoustic_connector((expected["acoustic"] + SCALARS["bias"]) * SCALARS["scaling"])[0]
    expected["prefill"] = inner.language_model(inputs_embeds=embeddings).last_hidden_state

    class Tokens:
        speech_start_id, speech_end_id, speech_diffusion_id = START, END, DIFFUSION
        eos_token_id, bos_token_id, pad_token_id, pad_id = EOS, None, 504, 504

    said = Said(SAID["original"])
    drawn = []
    real_sampler = model.sample_speech_tokens

    def sampler(condition, negative, cfg_scale):
        drawn.append((condition, negative, real_sampler(condition, negative, cfg_scale)))
        return drawn[-1][2]

    model.sample_speech_tokens = sampler
    code.VibeVoiceTokenConstraintProcessor = lambda *_, **__: said
    VibeVoiceTokenizerEncoderOutput.sample = lambda self, **_: (self.mean, None)
    model.set_ddpm_inference_steps(STEPS)
    speech_mask = torch.zeros(1, ids.shape[1], dtype=torch.bool)
    speech_mask[0, 5:8] = True
    randn, torch.randn = torch.randn, noise_source(torch.randn)
    out = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), speech_tensors=wave,
        speech_masks=torch.ones(1, 3, dtype=torch.bool), speech_input_mask=speech_mask, tokenizer=Tokens(),
        cfg_scale=SCALE, max_new_tokens=20, generation_config={"do_sample": False}, show_progress_bar=False)
    torch.randn = randn
    assert out.sequences[0, 24:].tolist() == SAID["original"], out.sequences[0, 24:]
    expected |= dict(
        loop_scores=torch.stack(said.scores),
        loop_positive=torch.cat([p for p, _, _ in drawn]),
        loop_negative=torch.cat([n for _, n, _ in drawn]),
        loop_latents=torch.cat([x for _, _, x in drawn]),
        loop_audio=out.speech_outputs[0].reshape(-1),
    )
    scalars = {f"model.speech_{name}_factor": value for name, value in SCALARS.items()}
    written = json.loads(config.to_json_string(use_diff=False))
    parts = [
        "acoustic_tokenizer_config", "semantic_tokenizer_config", "decoder_config", "diffusion_head_config",
        "acoustic_vae_dim", "semantic_vae_dim", "model_type"]
    write(data / "original", {part: written[part] for part in parts}, layout, scalars, expected)


def hf(data):
    import transformers.models.vibevoice.generation_vibevoice as generation
    from transformers import VibeVoiceConfig, VibeVoiceForConditionalGeneration

    config = VibeVoiceConfig(
        text_config=TEXT,
        audio_config=dict(model_type="vibevoice_acoustic_tokenizer", hidden_size=LATENT, **PORT),
        semantic_model_config=dict(model_type="vibevoice_acoustic_tokenizer_encoder", hidden_size=SEMANTIC, **PORT),
        diffusion_head_config=dict(num_hidden_layers=2, intermediate_size=3 * WIDTH),
        pad_token_id=EOS, eos_token_id=EOS, audio_bos_token_id=START, audio_eos_token_id=END, audio_token_id=DIFFUSION)
    model = fill(VibeVoiceForConditionalGeneration(config).float())
    inner = model.model
    inner.latent_scaling_factor.fill_(SCALARS["scaling"])
    inner.latent_bias_factor.fill_(SCALARS["bias"])
    model.tie_weights()
    layout = {name: value.shape for name, value in model.state_dict().items() if value.is_floating_point()}
    layout.pop("lm_head.weight")

    wave = values("wave", 1, 1, 3 * HOP) * 0.3
    latents = values("latents", 1, 4, LATENT) * 2
    expected = dict(
        acoustic=inner.audio_tower.encode(wave, sample=False).latents,
        semantic=inner.semantic_tokenizer_encoder(wave).latents,
        decoded=inner.audio_tower.decode(latents).audio,
        head=inner.diffusion_head(
            values("head.x", 2, LATENT), torch.tensor([799.0, 20.0]), condition=values("head.c", 2, WIDTH)),
    )
    ids, said, drawn = prompt(), Said(SAID["hf"]), []
    generation.VibeVoiceTokenConstraintProcessor = lambda *_, **__: said
    real_sampler = model._sample_audio_latent

    def sampler(positive, negative, *rest):
        drawn.append((positive, negative, real_sampler(positive, negative, *rest)))
        return drawn[-1][2]

    model._sample_audio_latent = sampler
    randn, torch.randn = torch.randn, noise_source(torch.randn)
    out = model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), input_values=wave,
        padding_mask=torch.ones(1, 3 * HOP, dtype=torch.bool), max_new_tokens=20, guidance_scale=SCALE,
        num_diffusion_steps=STEPS, return_dict_in_generate=True, output_logits=True, sample=False,
        do_sample=False)
    torch.randn = randn
    assert out.sequences[0, 24:].tolist() == SAID["hf"], out.sequences[0, 24:]
    expected |= dict(
        # Before transformers' own guidance of scores, which the original does not have.
        loop_scores=torch.cat(out.logits)[:, [START, END, DIFFUSION, EOS]],
        loop_positive=torch.cat([p for p, _, _ in drawn]),
        loop_negative=torch.cat([n for _, n, _ in drawn]),
        loop_latents=torch.cat([x[:, 0] for _, _, x in drawn]),
        loop_audio=out.audio[0].reshape(-1),
    )
    scalars = {f"model.latent_{name}_factor": value for name, value in SCALARS.items()}
    write(data / "hf", json.loads(config.to_json_string(use_diff=False)), layout, scalars, expected)


def asr(data):
    from transformers import VibeVoiceAsrConfig, VibeVoiceAsrForConditionalGeneration

    text = {**TEXT, "tie_word_embeddings": False}
    kind = "vibevoice_acoustic_tokenizer_encoder"
    config = VibeVoiceAsrConfig(
        acoustic_tokenizer_encoder_config=dict(model_type=kind, hidden_size=LATENT, **PORT),
        semantic_tokenizer_encoder_config=dict(model_type=kind, hidden_size=SEMANTIC, **PORT),
        text_config=text, audio_token_id=DIFFUSION, audio_bos_token_id=START, audio_eos_token_id=END,
        acoustic_tokenizer_chunk_size=2 * HOP)
    model = fill(VibeVoiceAsrForConditionalGeneration(config).float())
    layout = {name: value.shape for name, value in model.state_dict().items() if value.is_floating_point()}
    wave = values("wave", 1, 1, 5 * HOP) * 0.3
    ids = torch.tensor([[(11 * i * i + 5 * i) % 499 for i in range(24)]])
    ids[0, 4:11] = torch.tensor([START] + [DIFFUSION] * 5 + [END])
    mask = torch.ones(1, 5 * HOP, dtype=torch.bool)
    heard = model.get_audio_features(wave, mask, sample=False)
    expected = dict(heard=heard.pooler_output)
    out = model(input_ids=ids, input_values=wave, padding_mask=mask, sample=False, use_cache=True)
    scores, said = [out.logits[:, -1]], []
    for _ in range(4):
        said.append(int(scores[-1].argmax()))
        out = model(input_ids=torch.tensor([said[-1:]]), cache=out.cache, use_cache=True)
        scores.append(out.logits[:, -1])
    expected |= dict(scores=torch.cat(scores), said=torch.tensor(said))
    write(data / "asr", json.loads(config.to_json_string(use_diff=False)), layout, {}, expected)


def schedule(data):
    from diffusers import DPMSolverMultistepScheduler

    written = {}
    for steps in (1, 2, 5, 10, 20):
        solver = DPMSolverMultistepScheduler(beta_schedule="squaredcos_cap_v2", prediction_type="v_prediction")
        solver.set_timesteps(steps)
        x, trail = torch.tensor([1.3]), []
        for t in solver.timesteps:
            x = solver.step(0.8 * x + 0.3 * torch.sin(x) - 0.1, t, x).prev_sample
            trail.append(float(x))
        written[steps] = dict(timesteps=solver.timesteps.tolist(), trail=trail)
    (data / "schedule.json").write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    dict(original=original, hf=hf, asr=asr, schedule=schedule)[sys.argv[1]](Path(sys.argv[2]))
