"""Runs PyPI demucs on formula weights and stores parts of what its stages give.

    python tests/reference/demucs_reference.py tests/data/demucs              # small networks
    python tests/reference/demucs_reference.py --released NAME OUT.safetensors

Needs torch, safetensors, and demucs 4.1.0 (pip install --no-deps demucs einops julius tqdm). The first
form writes, for each small network NAME, NAME/config.json (class and arguments), NAME/layout.json
(every tensor's name and shape) and NAME/expected.safetensors; and tiny.th and foreign.th, checkpoints as
torch writes them. The second takes one of the released sizes (htdemucs, htdemucs_ft, htdemucs_6s,
hdemucs_mmi).
Of each tensor every STEP-th value is stored, row-major with channels last.
"""
import json
import random
import sys
import types
from fractions import Fraction
from pathlib import Path

import torch
from demucs.apply import BagOfModels, apply_model
from demucs.hdemucs import HDemucs
from demucs.htdemucs import HTDemucs
from formula_weights import fill, unit
from safetensors.torch import save_file

FOUR = ["drums", "bass", "other", "vocals"]
SMALL = {
    "transformer": (HTDemucs, dict(
        sources=["vocals", "rest"], channels=8, nfft=2048, bottom_channels=32, t_heads=4, dconv_mode=3,
        samplerate=8000, segment=Fraction(6, 5))),
    "plain": (HTDemucs, dict(
        sources=FOUR, channels=8, nfft=2048, audio_channels=1, dconv_mode=1, depth=3, t_layers=2, t_heads=2,
        t_cross_first=True, t_layer_scale=False, t_norm_out=False, freq_emb=0, samplerate=8000, segment=1)),
    "hybrid": (HDemucs, dict(
        sources=["a", "b"], channels=8, dconv_mode=3, samplerate=8000, segment=27)),
}
RELEASED = {
    "htdemucs": (HTDemucs, dict(
        sources=FOUR, bottom_channels=512, dconv_mode=3, t_dropout=0.02, t_sparse_self_attn=False,
        samplerate=44100, segment=Fraction(39, 5))),
    "htdemucs_6s": (HTDemucs, dict(
        sources=FOUR + ["guitar", "piano"], bottom_channels=512, dconv_mode=3, samplerate=44100,
        segment=Fraction(39, 5))),
    "hdemucs_mmi": (HDemucs, dict(sources=FOUR, dconv_mode=3, samplerate=44100, segment=44)),
}


def sound(name, channels, count):
    """Noise under a wave, [1, channel, sample]."""
    noise = torch.from_numpy(unit(name, channels * count)).view(count, channels)
    wave = torch.sin(torch.arange(count, dtype=torch.float32) * 0.01)[:, None]
    return (0.2 * noise + 0.3 * wave).t()[None].contiguous()


def parts(tensor, step):
    return tensor.detach().contiguous().flatten()[::step].contiguous().clone()


def stages(model, mix, step):
    """What the two branches and the whole network make of a mix."""
    kept = {}

    def keep(name):
        return lambda module, inputs, output: kept.__setitem__(name, output[0])

    hooks = [model.decoder[-1].register_forward_hook(keep("bins")),
             model.tdecoder[-1].register_forward_hook(keep("samples"))]
    with torch.no_grad():
        stems = model(mix)
    for hook in hooks:
        hook.remove()
    bins = kept["bins"][0].permute(1, 2, 0)  # frequency, frame, stem * channel * 2
    samples = kept["samples"][0].t()  # sample, stem * channel
    return {
        "bins": parts(bins, step),
        "samples": parts(samples, step),
        "stems": parts(stems[0].transpose(1, 2), step),  # stem, sample, channel
    }


def small(folder):
    for name, (cls, kwargs) in SMALL.items():
        model = fill(cls(**kwargs))
        out = folder / name
        out.mkdir(parents=True, exist_ok=True)
        plain = {k: {"_type": "fraction", "numerator": v.numerator, "denominator": v.denominator}
                 if isinstance(v, Fraction) else v for k, v in kwargs.items()}
        about = {"klass": f"{cls.__module__}.{cls.__name__}", "kwargs": plain}
        (out / "config.json").write_text(json.dumps(about) + "\n")
        layout = {k: list(v.shape) for k, v in model.state_dict().items()}
        (out / "layout.json").write_text(json.dumps(layout) + "\n")
        count = int(model.segment * model.samplerate)
        channels = model.audio_channels
        tensors = stages(model, sound("mix", channels, count), 37)
        track = sound("track", channels, int(2.6 * count))
        other = fill(cls(**kwargs))
        for key, parameter in other.named_parameters():
            parameter.data *= 0.9 if len(key) % 2 else 1.05
        n = len(model.sources)
        bag = BagOfModels([model, other], [[1.0] * n, [0.0] * (n - 1) + [3.0]])
        runs = {"track": (model, dict(shifts=0))}
        if name != "hybrid":
            runs["bag"] = (bag, dict(shifts=0, overlap=0.1))
            runs["shifted"] = (model, dict(shifts=2, transition_power=2.0))
        for run, (network, options) in runs.items():
            # The transformer draws a number, always 0, for each segment: left out, so that what is
            # drawn are the shifts alone.
            random.randrange = lambda stop: 0
            random.seed(5)
            mono = track[0].mean(0)
            mean, deviation = mono.mean(), mono.std() + 1e-8
            found = apply_model(network, (track - mean) / deviation, split=True, **options)
            found = found * deviation + mean
            tensors[run] = parts(found[0].transpose(1, 2), 101)
        save_file(tensors, out / "expected.safetensors")
        print(name, {k: (tuple(v.shape), round(float(v.std()), 4)) for k, v in tensors.items()})


def checkpoints(folder):
    """A checkpoint in half precision as demucs writes it, and one of a class from elsewhere."""
    kwargs = dict(sources=["a", "b"], channels=8, nfft=1024, depth=2, bottom_channels=8, t_heads=2,
                  t_layers=2, dconv_mode=3, samplerate=8000, segment=Fraction(1, 2))
    model = fill(HTDemucs(**kwargs)).half().float()
    state = {k: v.half() for k, v in model.state_dict().items()}
    content = {"klass": HTDemucs, "args": (), "kwargs": kwargs, "state": state,
               "training_args": {"dset": {"samplerate": 8000}, "lr": 3e-4, "misc": [None, True]}}
    torch.save(content, folder / "tiny.th")
    mix = sound("mix", 2, 4000)
    save_file(stages(model, mix, 7), folder / "tiny.safetensors")
    module = types.ModuleType("elsewhere")
    module.Net = type("Net", (), {"__module__": "elsewhere"})
    sys.modules["elsewhere"] = module
    torch.save({**content, "klass": module.Net, "state": {}}, folder / "foreign.th")


def tuned(cls, kwargs, index):
    """The network numbered `index` of a bag: formula weights, each tensor scaled by its name's length."""
    model = fill(cls(**kwargs))
    for key, parameter in model.named_parameters():
        parameter.data *= 1 - 0.05 * index * (len(key) % 2)
    return model


def released(name, target):
    cls, kwargs = RELEASED[name.replace("_ft", "")]
    torch.set_num_threads(2)
    if name == "htdemucs_ft":
        bag = BagOfModels([tuned(cls, kwargs, i) for i in range(4)],
                          [[float(i == j) for j in range(4)] for i in range(4)])
        count = int(kwargs["segment"] * kwargs["samplerate"])
        with torch.no_grad():
            stems = apply_model(bag, sound("mix", 2, count), shifts=0, split=False)
        tensors = {"stems": parts(stems[0].transpose(1, 2), 1009)}
    else:
        model = fill(cls(**kwargs))
        count = int(model.segment * model.samplerate) if cls is HTDemucs else 10 * model.samplerate
        tensors = stages(model, sound("mix", 2, count), 1009)
    save_file(tensors, target)
    print(name, {k: (tuple(v.shape), round(float(v.std()), 4)) for k, v in tensors.items()})


if __name__ == "__main__":
    if sys.argv[1] == "--released":
        released(sys.argv[2], Path(sys.argv[3]))
    else:
        target = Path(sys.argv[1])
        target.mkdir(parents=True, exist_ok=True)
        small(target)
        checkpoints(target)
