"""Runs transformers' VitsModel on formula weights in small configurations and stores what its
stages give: the text encoder, the logarithms of the durations, the flow, the samples.

    python tests/reference/vits_reference.py tests/data/piper

Needs numpy, safetensors, torch, transformers 5.24. For each configuration NAME it writes NAME/ with
`config.json`, `layout.json` (every tensor's name and shape) and `expected.safetensors`.
"""
import json
import sys
from pathlib import Path

import torch
from formula_weights import fill
from safetensors.torch import save_file
from transformers import VitsConfig, VitsModel

SEED = 7
IDS = [0, 5, 0, 11, 0, 3, 0, 17, 0, 2, 0, 19, 0, 8, 0, 11, 0]

COMMON = dict(
    vocab_size=20,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    window_size=4,
    ffn_dim=64,
    flow_size=32,
    spectrogram_bins=9,
    prior_encoder_num_flows=4,
    prior_encoder_num_wavenet_layers=3,
    posterior_encoder_num_wavenet_layers=1,
    duration_predictor_filter_channels=48,
    upsample_initial_channel=64,
    upsample_rates=[4, 2],
    upsample_kernel_sizes=[8, 4],
    sampling_rate=16000,
)

CONFIGS = {
    # Blocks of type 1 with 11 taps, one speaker.
    "single": dict(resblock_kernel_sizes=[3, 11], resblock_dilation_sizes=[[1, 3], [1, 5]]),
    # Speakers, dilated WaveNet.
    "speakers": dict(
        num_speakers=3,
        speaker_embedding_size=16,
        wavenet_dilation_rate=2,
        resblock_kernel_sizes=[3, 7],
        resblock_dilation_sizes=[[1, 2], [1, 3]],
    ),
    # Durations without a flow, channels that fill no vector.
    "plain": dict(
        num_speakers=3,
        speaker_embedding_size=16,
        use_stochastic_duration_prediction=False,
        upsample_initial_channel=24,
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 2]],
    ),
}


def run(model, config):
    kept = {}

    def keep(name):
        def hook(_, __, output):
            kept[name] = output
        return hook

    model.text_encoder.register_forward_hook(keep("encoder"))
    model.duration_predictor.register_forward_hook(keep("durations"))
    model.flow.register_forward_hook(keep("flow"))
    speaker = 2 if config.num_speakers > 1 else None
    torch.manual_seed(SEED)
    with torch.no_grad():
        out = model(torch.tensor([IDS]), speaker_id=speaker)
    encoder = kept["encoder"]
    return {
        "ids": torch.tensor(IDS, dtype=torch.int32),
        "means": encoder.prior_means[0],
        "log_deviations": encoder.prior_log_variances[0],
        "log_durations": kept["durations"].reshape(-1),
        "frames": kept["flow"][0].T.contiguous(),
        "samples": out.waveform[0],
    }


def main():
    root = Path(sys.argv[1])
    for name, changes in CONFIGS.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        config = VitsConfig(**{**COMMON, **changes})
        model = fill(VitsModel(config))
        # Formula weights make long durations.
        model.speaking_rate = 4.0
        layout = {
            key: list(value.shape)
            for key, value in model.state_dict().items()
            if not key.startswith("posterior_encoder") and ".post_" not in key
        }
        tensors = {key: value.clone().contiguous() for key, value in run(model, config).items()}
        values = config.to_dict()
        wanted = {
            "model_type", "sampling_rate", "num_speakers", "speaker_embedding_size",
            "upsample_rates", "resblock_dilation_sizes", "wavenet_dilation_rate",
            "duration_predictor_flow_bins", "duration_predictor_tail_bound",
            "noise_scale", "noise_scale_duration",
        }
        values = {key: value for key, value in values.items() if key in wanted}
        values["speaking_rate"] = model.speaking_rate
        (folder / "config.json").write_text(json.dumps(values, indent=1) + "\n")
        (folder / "layout.json").write_text(json.dumps(layout) + "\n")
        save_file(tensors, folder / "expected.safetensors", metadata={"seed": str(SEED)})
        durations = torch.ceil(torch.exp(tensors["log_durations"]) / model.speaking_rate)
        print(name, {key: tuple(value.shape) for key, value in tensors.items()}, durations.tolist())
        print(float(tensors["samples"].abs().max()), float(tensors["samples"].std()))


if __name__ == "__main__":
    main()
