"""Expected values for the Whisper tests, from Hugging Face transformers in f32.

    whisper_reference.py formula OUT                 tiny network under formula weights
    whisper_reference.py real FOLDER NAME OUT        weights of a CTranslate2 folder, on speech

Tested with transformers 5.24.0 and torch 2.15.0 (CPU). The files it writes are described in
tests/data/whisper/README.md.
"""
import json
import sys
from pathlib import Path

import numpy as np
import soundfile
import torch
import transformers
from safetensors.numpy import save_file
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

import ct2
import formula_weights
import whisper_weights

SPEECH = Path(__file__).parent.parent / "speech"
CLIPS = ("jfk", "sense-and-sensibility-0870")
FRAME_STEP, POSITION_STEP, TOP = 10, 50, 64

torch.set_grad_enabled(False)


def save(path, tensors, **about):
    """Writes f32 and i32 tensors; `about` and the versions go into the file's metadata."""
    about |= {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    path.parent.mkdir(parents=True, exist_ok=True)
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    save_file(contiguous, path, {k: str(v) for k, v in about.items()})
    print(path, path.stat().st_size, "bytes")


def norm(tensor):
    return np.array([np.linalg.norm(tensor.astype(np.float64))], np.float32)


def decode(model, encoded, tokens):
    """Logits [T, vocabulary] for the given tokens, all at once."""
    output = model(
        encoder_outputs=BaseModelOutput(last_hidden_state=encoded),
        decoder_input_ids=torch.tensor([tokens]),
    )
    return output.logits[0].numpy()


def formula(out):
    """Two layers each side, width 64: small enough to store every logit."""
    sizes = dict(
        vocab_size=512, num_mel_bins=80, d_model=64, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
        decoder_ffn_dim=128, max_source_positions=1500, max_target_positions=448,
        eos_token_id=500, bos_token_id=500, pad_token_id=500, decoder_start_token_id=501,
    )
    config = WhisperConfig(**sizes, attn_implementation="eager")
    model = formula_weights.fill(WhisperForConditionalGeneration(config))
    model.tie_weights()
    mel = formula_weights.unit("input.mel", 80 * 3000).reshape(80, 3000)
    tokens = [501, 7, 42, 3, 3, 499, 120, 0, 64, 333, 8, 9]
    encoded = model.model.encoder(torch.from_numpy(mel)[None]).last_hidden_state
    hidden, logits = encoded[0].numpy(), decode(model, encoded, tokens)
    names = {n: list(t.shape) for n, t in model.state_dict().items() if n != "proj_out.weight"}
    out.mkdir(parents=True, exist_ok=True)
    about = {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper"}
    write_json(out / "config.json", about | sizes)
    write_json(out / "layout.json", names)
    save(
        out / "expected.safetensors",
        {
            "tokens": np.array(tokens, np.int32),
            "encoder": hidden[::POSITION_STEP],
            "encoder.norm": norm(hidden),
            "logits": logits,
            "logits.norm": norm(logits),
        },
    )


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def load(folder):
    variables = ct2.read(Path(folder) / "model.bin")
    sizes, generation = whisper_weights.config(folder, variables)
    model = WhisperForConditionalGeneration(WhisperConfig(**sizes, attn_implementation="eager"))
    state = {k: torch.from_numpy(v) for k, v in whisper_weights.state_dict(variables).items()}
    model.load_state_dict(state, strict=True)
    model.tie_weights()
    model.generation_config = transformers.GenerationConfig(**generation)
    return model.eval()


def prompts(model):
    """The start of a transcript, English: without and with timestamps."""
    start = model.config.decoder_start_token_id
    if not model.generation_config.is_multilingual:
        return [start, 50362], [start]
    return [start, 50259, 50359, 50363], [start, 50259, 50359]


def greedy(model, encoded, prompt, timestamps):
    """Tokens after the prompt, the most likely one at a time, end token included."""
    settings = model.generation_config
    settings.return_timestamps = timestamps
    rules = [
        transformers.SuppressTokensLogitsProcessor(settings.suppress_tokens),
        transformers.SuppressTokensAtBeginLogitsProcessor(settings.begin_suppress_tokens, len(prompt)),
    ]
    if timestamps:
        rules.append(transformers.WhisperTimeStampLogitsProcessor(settings, begin_index=len(prompt)))
    tokens = list(prompt)
    while len(tokens) < model.config.max_target_positions:
        scores = torch.from_numpy(decode(model, encoded, tokens)[-1:])
        for rule in rules:
            scores = rule(torch.tensor([tokens]), scores)
        tokens.append(int(scores.argmax()))
        if tokens[-1] == settings.eos_token_id:
            break
    return tokens[len(prompt) :]


def real(folder, name, out):
    model = load(folder)
    tokenizer = tokenizers_of(folder)
    extractor = WhisperFeatureExtractor(feature_size=model.config.num_mel_bins)
    random = np.random.default_rng(1)
    plain, timed = prompts(model)
    for clip in CLIPS:
        samples, rate = soundfile.read(SPEECH / f"{clip}.flac", dtype="float32")
        features = extractor(samples, sampling_rate=rate, return_tensors="pt").input_features
        encoded = model.model.encoder(features).last_hidden_state
        words = greedy(model, encoded, plain, timestamps=False)
        spans = greedy(model, encoded, timed, timestamps=True)
        tokens = plain + words[:-1]
        logits = decode(model, encoded, tokens)
        best = np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
        others = random.integers(0, logits.shape[1], (len(tokens), TOP))
        ids = np.concatenate([best, others], axis=1)
        mel, hidden = features[0].numpy(), encoded[0].numpy()
        save(
            out / name / f"{clip}.safetensors",
            {
                "mel": mel[:, ::FRAME_STEP],
                "mel.norm": norm(mel),
                "encoder": hidden[::POSITION_STEP],
                "encoder.norm": norm(hidden),
                "tokens": np.array(tokens, np.int32),
                "logits.ids": ids.astype(np.int32),
                "logits": np.take_along_axis(logits, ids, axis=1),
                "logits.norm": np.linalg.norm(logits.astype(np.float64), axis=1).astype(np.float32),
                "greedy": np.array(words, np.int32),
                "greedy.timestamps": np.array(spans, np.int32),
            },
            text=tokenizer.decode(words),
        )
        print(repr(tokenizer.decode(words)), spans)


def tokenizers_of(folder):
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["formula"] and len(sys.argv) == 3:
        formula(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["real"] and len(sys.argv) == 5:
        real(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
    else:
        sys.exit(__doc__)
