"""Writes the torch, numpy and ONNX files of `tests/data/weights`.

Needs numpy and onnx. The torch files are written without torch: stand-in classes under torch's
module names pickle to what torch itself writes.

    python tests/reference/weights_fixtures.py tests/data/weights
"""
import collections
import io
import pickle
import struct
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001


def module(name, **contents):
    made = types.ModuleType(name)
    for key, value in contents.items():
        value.__module__, value.__qualname__ = name, key
        setattr(made, key, value)
    sys.modules[name] = made
    return made


def stand_in(name):
    return type(name, (), {})


STORAGES = {"f4": "FloatStorage", "f2": "HalfStorage", "bf": "BFloat16Storage", "i8": "LongStorage"}
torch = module("torch", **{name: stand_in(name) for name in STORAGES.values()})
module("torch._utils", _rebuild_tensor_v2=lambda *a: None, _rebuild_parameter=lambda *a: None)
module("demo", Model=stand_in("Model"))


class Storage:
    def __init__(self, key, kind, data):
        self.key, self.kind, self.data = key, getattr(torch, STORAGES[kind]), data
        self.count = len(data) // (2 if kind == "bf" else int(kind[1]))


class Tensor:
    def __init__(self, storage, offset, shape, stride):
        self.args = (storage, offset, shape, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.args


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_parameter, (self.tensor, True, collections.OrderedDict())


class Pickler(pickle.Pickler):
    legacy = False

    def persistent_id(self, thing):
        if not isinstance(thing, Storage):
            return None
        key = ("storage", thing.kind, thing.key, "cpu", thing.count)
        return key + (None,) if self.legacy else key


def dumps(thing, legacy=False):
    out = io.BytesIO()
    pickler = Pickler(out, 2)
    pickler.legacy = legacy
    pickler.dump(thing)
    return out.getvalue()


def checkpoint():
    """The checkpoint that the tests expect, and its storages."""
    values = np.arange(12, dtype="<f4") / 4 - 1
    bf = (np.array([1.5, -2.0, 0.25], "<f4").view("<u4") >> 16).astype("<u2")
    storages = [
        Storage("0", "f4", values.tobytes()),
        Storage("1", "f2", np.array([0.5, -0.5], "<f2").tobytes()),
        Storage("2", "bf", bf.tobytes()),
        Storage("3", "i8", np.array([7, -7], "<i8").tobytes()),
    ]
    a, h, b, i = storages
    model = collections.OrderedDict()
    model["weight"] = Parameter(Tensor(a, 0, (2, 3), (3, 1)))
    model["turned"] = Tensor(a, 0, (3, 2), (1, 3))
    model["tail"] = Tensor(a, 6, (2, 3), (3, 1))
    model["half"] = Tensor(h, 0, (2,), (1,))
    model["brain"] = Tensor(b, 1, (2,), (1,))
    model["steps"] = Tensor(i, 0, (2,), (1,))
    tree = {
        "epoch": 3,
        "lr": 0.001,
        "kwargs": {"channels": 48, "sources": ["drums", "bass"], "big": 2**70, "none": None},
        "state": model,
        "list": [Tensor(i, 1, (), ()), True],
    }
    return tree, storages


def write_zip(path, name, pickled, storages=(), compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        def put(entry, data):
            archive.writestr(zipfile.ZipInfo(f"{name}/{entry}", (1980, 1, 1, 0, 0, 0)), data, compression)
        put("data.pkl", pickled)
        if storages:
            put("byteorder", b"little")
        for storage in storages:
            put(f"data/{storage.key}", storage.data)
        put("version", b"3\n")


def write_legacy(path, tree, storages):
    system = {"protocol_version": PROTOCOL, "little_endian": True}
    with open(path, "wb") as out:
        for thing in (MAGIC, PROTOCOL, system):
            out.write(pickle.dumps(thing, 2))
        out.write(dumps(tree, legacy=True))
        out.write(pickle.dumps([s.key for s in storages], 2))
        for storage in storages:
            out.write(struct.pack("<q", storage.count) + storage.data)


def arrays():
    a = np.arange(6, dtype="<f4").reshape(2, 3) * 0.5
    return {
        "conv.weight": a,
        "columns": np.asfortranarray(a),
        "bytes": np.arange(256, dtype="u1"),
        "scalar": np.float32(0.25),
        "step": np.int64(-5),
    }


def write_onnx(path):
    def tensor(name, kind, dims, values, raw=False):
        return helper.make_tensor(name, kind, dims, values, raw)

    raw = np.array([[1.0, 2.0], [3.0, 4.0]], "<f4")
    external = numpy_helper.from_array(raw + 10, "outside")
    external.ClearField("raw_data")
    external.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "graph.data"), ("offset", "4"), ("length", "16")):
        external.external_data.add(key=key, value=value)
    (path.parent / "graph.data").write_bytes(b"skip" + (raw + 10).tobytes())
    initializers = [
        numpy_helper.from_array(raw, "raw"),
        tensor("floats", TensorProto.FLOAT, [3], [0.5, -0.5, 1.0]),
        tensor("halves", TensorProto.FLOAT16, [2], np.array([1.5, -2.0], "<f2")),
        tensor("bytes", TensorProto.INT8, [3], [-1, 0, 127]),
        tensor("unsigned", TensorProto.UINT8, [2], [0, 255]),
        tensor("longs", TensorProto.INT64, [2], [2**40, -1]),
        tensor("doubles", TensorProto.DOUBLE, [1], [0.1]),
        tensor("words", TensorProto.STRING, [1], [b"no weight"]),
        external,
    ]

    def branch(name, value):
        constant = helper.make_node(
            "Constant", [], ["inner"], value=numpy_helper.from_array(np.array([value], "<f4"))
        )
        return helper.make_graph([constant], name, [], [helper.make_tensor_value_info("inner", 1, [1])])

    nodes = [
        helper.make_node("Constant", [], ["constant"], value=numpy_helper.from_array(raw * 2)),
        helper.make_node("Constant", [], ["axes"], value_ints=[0, 2]),
        helper.make_node("If", ["condition"], ["chosen"], name="choice",
                         then_branch=branch("yes", 1.0), else_branch=branch("no", 2.0)),
        helper.make_node("Conv", ["x", "raw"], ["y"], name="conv", kernel_shape=[3], auto_pad="VALID", alpha=0.5),
    ]
    graph = helper.make_graph(
        nodes, "demo",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2]),
         helper.make_tensor_value_info("condition", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="fixtures")
    model.ir_version = 8
    helper.set_model_props(model, {"sample_rate": "16000"})
    path.write_bytes(model.SerializeToString())


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    tree, storages = checkpoint()
    write_zip(folder / "zip.pt", "zip", dumps(tree), storages)
    write_zip(folder / "deflated.pt", "deflated", dumps(tree), storages, zipfile.ZIP_DEFLATED)
    write_legacy(folder / "legacy.pt", tree, storages)
    write_zip(folder / "arrays.ckpt", "testcheckpoint0", pickle.dumps(arrays(), 2))
    (folder / "arrays.pkl").write_bytes(pickle.dumps(arrays(), 5))
    demo = sys.modules["demo"].Model()
    demo.width = 64
    write_zip(folder / "class.pt", "class", dumps({"klass": type(demo), "model": demo}), storages)
    np.savez(folder / "arrays.npz", **{k: v for k, v in arrays().items() if k != "step"})
    write_onnx(folder / "graph.onnx")


main(Path(sys.argv[1]))
