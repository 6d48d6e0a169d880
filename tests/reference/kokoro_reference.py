"""Runs Kokoro's own code (PyPI kokoro 0.9.4, KModel) and onnxruntime, and stores what they give.

    python tests/reference/kokoro_reference.py formula tests/data/kokoro
    python tests/reference/kokoro_reference.py published MODELS/kokoro tests/data/kokoro [checkpoint]

`formula`: formula weights, the language model made small (the rest of the network has fixed sizes).
Writes formula/{config.json, layout.json, expected.safetensors}.

`published`: the 8-bit ONNX export in MODELS/kokoro. onnxruntime runs it as it is, without noise; the
same weights made f32 run in torch, with the noise of a seed. Writes published.safetensors, and with
`checkpoint` the f32 weights as `kokoro-v1_0.pth`, `config.json` and `voices/*.pt` in that folder.

Needs kokoro, numpy, safetensors, torch, transformers; `published` also onnx and onnxruntime.
"""
import json
import sys
import types
from pathlib import Path

import numpy as np
import torch
from formula_weights import tensor
from safetensors.torch import save_file

# KModel alone needs none of what the package's pipeline imports.
sys.modules["kokoro.pipeline"] = types.SimpleNamespace(KPipeline=None)
from kokoro.model import KModel  # noqa: E402

SEED = 7
CONFIG = dict(
    istftnet=dict(
        upsample_kernel_sizes=[20, 12], upsample_rates=[10, 6], gen_istft_hop_size=5,
        gen_istft_n_fft=20, resblock_dilation_sizes=[[1, 3, 5]] * 3,
        resblock_kernel_sizes=[3, 7, 11], upsample_initial_channel=512,
    ),
    dim_in=64, dropout=0.2, hidden_dim=512, max_conv_dim=512, max_dur=50, multispeaker=True,
    n_layer=3, n_mels=80, n_token=178, style_dim=128, text_encoder_kernel_size=5,
    plbert=dict(
        hidden_size=768, num_attention_heads=12, intermediate_size=2048,
        max_position_embeddings=512, num_hidden_layers=12, dropout=0.1,
    ),
)
PARTS = ("bert", "bert_encoder", "predictor", "text_encoder", "decoder")
TEXT = "həlˈO, wˈɜɹld. ðə kwˈɪk bɹˈWn fˈɑks."


def build(config):
    """A KModel without weights."""
    load = torch.load
    torch.load = lambda *_, **__: {}
    try:
        return KModel(repo_id="hexgrad/Kokoro-82M", config=config, model="none").eval()
    finally:
        torch.load = load


def run(model, ids, style, noise, voiced=False):
    """Every stage, with the noise of the seed or without any; `voiced` gives the decoder a pitch
    that is sometimes high enough to be one."""
    kept = {}

    def keep(name, at=None):
        def hook(_, __, output):
            kept.setdefault(name, output if at is None else output[at])
        return hook

    d = model.decoder
    handles = [
        model.bert.register_forward_hook(keep("bert")),
        model.text_encoder.register_forward_hook(keep("text")),
        model.predictor.text_encoder.register_forward_hook(keep("prosody")),
        model.predictor.duration_proj.register_forward_hook(keep("logits")),
        model.predictor.F0_proj.register_forward_hook(keep("pitch")),
        model.predictor.N_proj.register_forward_hook(keep("energy")),
        d.decode[-1].register_forward_hook(keep("features")),
        d.generator.m_source.register_forward_hook(keep("source", 0)),
        d.generator.conv_post.register_forward_hook(keep("spectrum")),
    ]
    if voiced:
        def raised(_, inputs):
            text, pitch, energy, style = inputs
            kept["decoder_pitch"] = pitch.abs() * 200
            return text, kept["decoder_pitch"], energy, style
        handles.append(d.register_forward_pre_hook(raised))
    randn = torch.randn_like
    if not noise:
        torch.randn_like = torch.zeros_like
    try:
        torch.manual_seed(SEED)
        audio, lengths = model.forward_with_tokens(torch.tensor([ids]), style[None], 1.0)
    finally:
        torch.randn_like = randn
        for handle in handles:
            handle.remove()
    turned = {"text", "pitch", "energy", "features", "spectrum"}
    out = {k: (v[0].T if k in turned else v[0]) for k, v in kept.items()}
    out["durations"] = torch.sigmoid(out.pop("logits")).sum(-1)
    out["lengths"] = lengths.to(torch.int32)
    out["samples"] = audio
    out["ids"] = torch.tensor(ids, dtype=torch.int32)
    out["style"] = style
    return {k: v.detach().contiguous().clone() for k, v in out.items()}


def stored(out, every):
    """Large stages as every `every`-th row, so that the file stays small."""
    few = ("bert", "text", "prosody", "features", "spectrum")
    rows = {k: (v[::every].contiguous() if k in few else v) for k, v in out.items()}
    return {k: v.clone() for k, v in rows.items()}


def formula(folder):
    config = json.loads(json.dumps(CONFIG))
    config["plbert"].update(
        hidden_size=64, num_attention_heads=4, intermediate_size=128, num_hidden_layers=3
    )
    config["vocab"] = {c: i + 1 for i, c in enumerate(";:,.!? abcdefghijklmnopqrstuvwxyz")}
    model = build(config)
    layout = {}
    for part in PARTS:
        for name, value in getattr(model, part).state_dict().items():
            if value.is_floating_point():
                full = f"{part}.module.{name}"
                layout[full] = list(value.shape)
                with torch.no_grad():
                    value.copy_(torch.from_numpy(tensor(full, tuple(value.shape))))
    style = torch.from_numpy(tensor("style", (256, 3))[:, 0].copy())
    ids = [0, *(config["vocab"][c] for c in "fox"), 0]
    folder = folder / "formula"
    folder.mkdir(parents=True, exist_ok=True)
    out = run(model, ids, style, True, voiced=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "layout.json").write_text(json.dumps(layout))
    save_file(stored(out, 16), folder / "expected.safetensors")
    report(out)


def report(out):
    for name, value in out.items():
        value = value.float()
        print(f"{name} {list(value.shape)} rms {value.square().mean().sqrt():.4g}")


def module(node):
    """The module of KModel that a node of the export belongs to."""
    parts = node.strip("/").split("/")[1:-1]
    parts = [p for p, after in zip(parts, parts[1:] + [""]) if not after.startswith(p + ".")]
    outside = ("F0.", "N.", "F0_proj", "N_proj", "shared")
    return ("predictor." if parts and parts[0].startswith(outside) else "") + ".".join(parts)


def f32_weights(graph):
    """The weights of the 8-bit export in f32, under KModel's names."""
    from onnx import numpy_helper

    have = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    readers, makers, found = {}, {}, {}
    for node in graph.node:
        for value in node.input:
            readers.setdefault(value, []).append(node)
        for value in node.output:
            makers[value] = node
    for name, value in have.items():
        if value.dtype == np.float32:
            found[name.partition(".")[2]] = value

    def scaled(numbers, scale, zero):
        return (have[numbers].astype(np.float32) - have[zero].astype(np.float32)) * have[scale]

    for node in graph.node:
        name, inputs = module(node.name), node.input
        if node.op_type in ("MatMulInteger", "ConvInteger"):
            if inputs[1] not in have:
                continue
            after = readers[node.output[0]][0]
            if after.op_type == "Add":  # the bias in whole numbers
                after = readers[after.output[0]][0]
            cast = after.output[0]
            other = [i for i in readers[cast][0].input if i != cast][0]
            scale = [i for i in makers[other].input if i in have][0]
            value = scaled(inputs[1], scale, inputs[3])
            found.setdefault(name + ".weight", value.T if node.op_type[0] == "M" else value)
        elif node.op_type == "Gather" and inputs[0] in have and have[inputs[0]].ndim == 2:
            rows = readers[node.output[0]][0]
            if rows.op_type == "DequantizeLinear":
                found[name + ".weight"] = scaled(inputs[0], rows.input[1], rows.input[2])
        elif node.op_type in ("Conv", "ConvTranspose") and inputs[1] in have:
            found[name + ".weight"] = have[inputs[1]]
        elif node.op_type == "MatMul" and inputs[1] in have:
            found[name + ".weight"] = have[inputs[1]].T
        elif node.op_type == "DynamicQuantizeLSTM":
            order = [0, 2, 3, 1]  # input, output, forget, cell -> input, forget, cell, output
            for d, end in enumerate(("", "_reverse")):
                for part, at in (("ih", (1, 8, 9)), ("hh", (2, 10, 11))):
                    numbers, scale, zero = (have[inputs[i]][d] for i in at)
                    value = ((numbers.astype(np.float32) - np.float32(zero)) * scale).T
                    value = value.reshape(4, -1, value.shape[1])[order].reshape(value.shape)
                    found[f"{name}.weight_{part}_l0{end}"] = value
                for half, part in enumerate(("ih", "hh")):
                    bias = have[inputs[3]][d].reshape(2, 4, -1)[half][order].reshape(-1)
                    found[f"{name}.bias_{part}_l0{end}"] = bias
    return found


def fill(model, found):
    """Loads them; weight normalisation keeps a weight as its length and direction."""
    missing = []
    for part in PARTS:
        for name, value in getattr(model, part).state_dict().items():
            full = f"{part}.{name}"
            plain = full.replace("weight_v", "weight").replace("weight_g", "weight")
            if plain in found:
                new = torch.from_numpy(np.array(found[plain], dtype=np.float32))
                if full.endswith("weight_g"):
                    new = new.flatten(1).norm(dim=1).reshape(value.shape)
                elif full.endswith("weight_v"):
                    # Rows that 8 bits made zero have no direction: any will do, their length is 0.
                    new[new.flatten(1).norm(dim=1) == 0] = 1
                with torch.no_grad():
                    value.copy_(new.reshape(value.shape))
            elif value.is_floating_point():
                missing.append(full)
    left = {name.rsplit(".", 2)[-2] for name in missing}
    assert left <= {"norm", "pooler"}, missing


def published(folder, data, checkpoint):
    import onnx
    import onnxruntime

    path = next(folder.glob("*.onnx"))
    graph = onnx.load(path)
    config = dict(CONFIG, vocab=json.loads((folder / "vocab.json").read_text())["vocab"])
    model = build(config)
    fill(model, f32_weights(graph.graph))
    voices = np.load(next(folder.glob("*.npz")))
    ids = [0, *(config["vocab"][c] for c in TEXT), 0]
    style = torch.from_numpy(voices["jf_alpha"][len(ids) - 3, 0])
    out = stored(run(model, ids, style, True), 8)
    quiet = run(model, ids, style, False)
    report(quiet)
    names = {
        "lengths": "/encoder/Clip_output_0",
        "pitch": "/decoder/decoder/Unsqueeze_output_0",
        "energy": "/decoder/decoder/Unsqueeze_1_output_0",
    }
    graph.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names.values())
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    feed = dict(tokens=np.array([ids]), style=style[None].numpy(), speed=np.ones(1, np.float32))
    got = session.run(["audio", *names.values()], feed)
    audio, lengths, pitch, energy = (torch.from_numpy(np.array(x)).flatten() for x in got)
    print("lengths", lengths.int().tolist(), quiet["lengths"].tolist())
    same = torch.equal(lengths.int(), quiet["lengths"])
    print("durations equal:", same, "samples", audio.shape, quiet["samples"].shape)
    for name, a in (("pitch", pitch), ("energy", energy)):
        b = quiet[name].flatten()
        print(f"{name}: 8 bits differ by {float((a - b).norm() / b.norm()):.3g} of f32")
    out["quiet"] = quiet["samples"]
    out["onnx_samples"] = audio
    out["onnx_lengths"] = lengths.to(torch.int32)
    out["onnx_pitch"] = pitch
    out["onnx_energy"] = energy
    save_file(out, data / "published.safetensors", metadata={"phonemes": TEXT})
    if checkpoint is not None:
        (checkpoint / "voices").mkdir(parents=True, exist_ok=True)
        (checkpoint / "config.json").write_text(json.dumps(config))
        def state(part):
            return {f"module.{k}": v for k, v in getattr(model, part).state_dict().items()
                    if ".norm." not in k or part in ("bert",)}
        torch.save({part: state(part) for part in PARTS}, checkpoint / "kokoro-v1_0.pth")
        for name in voices.files:
            torch.save(torch.from_numpy(voices[name]), checkpoint / "voices" / f"{name}.pt")


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    mode, *paths = sys.argv[1:]
    paths = [Path(p) for p in paths]
    if mode == "formula":
        formula(*paths)
    else:
        published(*paths[:2], paths[2] if len(paths) > 2 else None)
