"""Whisper's weights under Hugging Face's names, from a CTranslate2 folder."""
import json
from pathlib import Path

import numpy as np

import ct2


def config(folder, variables):
    """The sizes and token numbers as WhisperConfig and GenerationConfig name them."""
    embedding = variables["decoder/embeddings/weight"]
    extra = json.loads((Path(folder) / "config.json").read_text())
    english = embedding.shape[0] == 51864
    end = 50256 if english else 50257
    model = dict(
        vocab_size=embedding.shape[0],
        num_mel_bins=variables["encoder/conv1/weight"].shape[1],
        d_model=embedding.shape[1],
        encoder_layers=ct2.layers(variables, "encoder"),
        decoder_layers=ct2.layers(variables, "decoder"),
        encoder_attention_heads=int(variables["encoder/num_heads"]),
        decoder_attention_heads=int(variables["decoder/num_heads"]),
        encoder_ffn_dim=variables["encoder/layer_0/ffn/linear_0/weight"].shape[0],
        decoder_ffn_dim=variables["decoder/layer_0/ffn/linear_0/weight"].shape[0],
        max_source_positions=variables["encoder/position_encodings/encodings"].shape[0],
        max_target_positions=variables["decoder/position_encodings/encodings"].shape[0],
        eos_token_id=end,
        bos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=end + 1,
    )
    generation = dict(
        suppress_tokens=extra["suppress_ids"],
        begin_suppress_tokens=extra["suppress_ids_begin"],
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=end + 1,
        no_timestamps_token_id=50362 if english else 50363,
        is_multilingual=not english,
        max_length=448,
        max_initial_timestamp_index=50,
        return_timestamps=False,
    )
    return model, generation


def state_dict(variables):
    """Every tensor of WhisperForConditionalGeneration in f32, by its name there."""
    out = {}

    def put(name, array):
        out[name] = np.ascontiguousarray(array, dtype=np.float32)

    def norm(name, source):
        put(f"{name}.weight", variables[f"{source}/gamma"])
        put(f"{name}.bias", variables[f"{source}/beta"])

    def linears(names, source):
        """The rows of one fused CTranslate2 layer, split evenly among `names`."""
        weights = np.split(variables[f"{source}/weight"], len(names))
        biases = np.split(variables[f"{source}/bias"], len(names))
        for name, weight, bias in zip(names, weights, biases):
            put(f"{name}.weight", weight)
            if name.endswith("k_proj"):
                assert not np.any(bias), f"{source}: Whisper's keys have no bias"
            else:
                put(f"{name}.bias", bias)

    for stack in ("encoder", "decoder"):
        put(f"model.{stack}.embed_positions.weight", variables[f"{stack}/position_encodings/encodings"])
        norm(f"model.{stack}.layer_norm", f"{stack}/layer_norm")
        for i in range(ct2.layers(variables, stack)):
            to, source = f"model.{stack}.layers.{i}", f"{stack}/layer_{i}"
            norm(f"{to}.self_attn_layer_norm", f"{source}/self_attention/layer_norm")
            qkv = [f"{to}.self_attn.{part}_proj" for part in "qkv"]
            linears(qkv, f"{source}/self_attention/linear_0")
            linears([f"{to}.self_attn.out_proj"], f"{source}/self_attention/linear_1")
            if stack == "decoder":
                norm(f"{to}.encoder_attn_layer_norm", f"{source}/attention/layer_norm")
                linears([f"{to}.encoder_attn.q_proj"], f"{source}/attention/linear_0")
                kv = [f"{to}.encoder_attn.{part}_proj" for part in "kv"]
                linears(kv, f"{source}/attention/linear_1")
                linears([f"{to}.encoder_attn.out_proj"], f"{source}/attention/linear_2")
            norm(f"{to}.final_layer_norm", f"{source}/ffn/layer_norm")
            linears([f"{to}.fc1"], f"{source}/ffn/linear_0")
            linears([f"{to}.fc2"], f"{source}/ffn/linear_1")
    for conv in ("conv1", "conv2"):
        put(f"model.encoder.{conv}.weight", variables[f"encoder/{conv}/weight"])
        put(f"model.encoder.{conv}.bias", variables[f"encoder/{conv}/bias"])
    put("model.decoder.embed_tokens.weight", variables["decoder/embeddings/weight"])
    put("proj_out.weight", variables["decoder/embeddings/weight"])
    return out
