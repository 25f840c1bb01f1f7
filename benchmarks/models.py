"""Write models to convert: ``python -m benchmarks.models KIND FOLDER [ARGUMENT …]``.

Files hold random numbers, as trained weights look to a disk: nothing can skip or share them.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

GIB, BLOCK = 1 << 30, 1 << 20
CHANNELS = 16  # of the chain's convolutions
VGG19 = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))  # channels and convolutions by stage
WIDE = 8192  # a float32 matrix of WIDE × WIDE is a quarter of a GiB
Shape = tuple[int, ...]


class Symbol:
    """An MXNet symbol and the shapes of its parameters, grown node by node."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.shapes: dict[str, Shape] = {}

    def variable(self, name: str, shape: Shape | None = None) -> int:
        """A variable; a parameter if it has a shape."""
        if shape is not None:
            self.shapes[name] = shape
        self.nodes.append({"op": "null", "name": name, "inputs": []})
        return len(self.nodes) - 1

    def node(
        self, op: str, name: str, inputs: Iterable[int], params: Mapping[str, Shape], **attrs: Any
    ) -> int:
        """An operator that reads ``inputs``, then parameters called after it."""
        read = [*inputs, *(self.variable(f"{name}_{key}", s) for key, s in params.items())]
        links = [[number, 0, 0] for number in read]
        texts = {key: str(value) for key, value in attrs.items()}
        self.nodes.append({"op": op, "name": name, "attrs": texts, "inputs": links})
        return len(self.nodes) - 1

    def write(self, prefix: Path) -> None:
        """Write ``-symbol.json`` and ``-0000.params``; the last node is the output."""
        variables = [i for i, n in enumerate(self.nodes) if n["op"] == "null"]
        text = json.dumps({
            "nodes": self.nodes, "arg_nodes": variables, "heads": [[len(self.nodes) - 1, 0, 0]],
            "attrs": {"mxnet_version": ["int", 10901]},
        })  # fmt: skip
        prefix.with_name(f"{prefix.name}-symbol.json").write_text(text)
        with open(prefix.with_name(f"{prefix.name}-0000.params"), "wb") as file:
            file.write(struct.pack("<QQQ", 0x112, 0, len(self.shapes)))
            for shape in self.shapes.values():
                file.write(struct.pack(f"<Iii{len(shape)}q", 0xF993FAC9, 0, len(shape), *shape))
                file.write(struct.pack("<iii", 1, 0, 0))
                write_random(file, shape)
            file.write(struct.pack("<Q", len(self.shapes)))
            for name in self.shapes:
                file.write(struct.pack("<Q", len(name) + 4) + f"arg:{name}".encode())


def write_random(file: BinaryIO, shape: Shape) -> int:
    """Write float32 numbers between 0 and 1; return the number of bytes."""
    block = np.random.default_rng(0).random(BLOCK // 4, np.float32).tobytes()
    left = size = 4 * int(np.prod(shape, dtype=np.int64))
    while left:
        left -= file.write(block[:left])
    return size


def chain(folder: Path, nodes: str, shapes: str) -> None:
    """``nodes`` operators in a row; with ``different`` shapes no two layers are alike."""
    symbol, c = Symbol(), CHANNELS
    x, h, w = symbol.variable("data"), 8, 6
    for number in range(int(nodes) // 5):
        name = f"layer{number}"
        weights = {"weight": (c, c, 1, 1), "bias": (c,)}
        pad = (1, 0) if shapes == "different" else (0, 0)
        h += 2 * pad[0]
        y = symbol.node(
            "Convolution", f"{name}_conv", [x], weights, kernel=(1, 1), num_filter=c, pad=pad
        )
        statistics = dict.fromkeys(("gamma", "beta", "running_mean", "running_var"), (c,))
        z = symbol.node("BatchNorm", f"{name}_norm", [y], statistics, fix_gamma=False, eps=1e-5)
        z = symbol.node("Activation", f"{name}_relu", [z], {}, act_type="relu")
        z = symbol.node("elemwise_add", f"{name}_add", [z, y], {})
        h, w = w, h
        x = symbol.node("Reshape", f"{name}_reshape", [z], {}, shape=(0, 0, h, w))
    symbol.write(folder / "model")


def wide(folder: Path, gigabytes: str) -> None:
    """Dense layers of a quarter of a GiB each."""
    symbol = Symbol()
    x = symbol.variable("data")
    for number in range(4 * int(gigabytes)):
        weight = {"weight": (WIDE, WIDE)}
        name = f"dense{number}"
        x = symbol.node("FullyConnected", name, [x], weight, num_hidden=WIDE, no_bias=True)
        x = symbol.node("Activation", f"relu{number}", [x], {}, act_type="relu")
    symbol.write(folder / "model")


def gluon(folder: Path, name: str) -> None:
    """A network of Gluon's model zoo, from MXNet; VGG-19 also without it."""
    if find_spec("mxnet") is not None:
        from testing import networks

        paths = networks.export(networks.build(name), folder)
        for path, ending in zip(paths, ("symbol.json", "0000.params"), strict=True):
            path.rename(folder / f"model-{ending}")
    elif name == "vgg19":
        vgg19().write(folder / "model")
    else:
        sys.exit("needs MXNet")


def vgg19() -> Symbol:
    """VGG-19 as Gluon exports it."""
    symbol, c = Symbol(), 3
    x = symbol.variable("data")
    for stage, (wider, count) in enumerate(VGG19):
        for layer in range(count):
            name, weights = f"conv{stage}_{layer}", {"weight": (wider, c, 3, 3), "bias": (wider,)}
            x = symbol.node(
                "Convolution", name, [x], weights, kernel=(3, 3), pad=(1, 1), num_filter=wider
            )
            x, c = symbol.node("Activation", f"{name}_relu", [x], {}, act_type="relu"), wider
        x = symbol.node("Pooling", f"pool{stage}", [x], {}, kernel=(2, 2), stride=(2, 2))
    units = c * 7 * 7
    for number, wider in enumerate((4096, 4096, 1000)):
        name, weights = f"dense{number}", {"weight": (wider, units), "bias": (wider,)}
        x, units = symbol.node("FullyConnected", name, [x], weights, num_hidden=wider), wider
        if number < 2:
            x = symbol.node("Activation", f"{name}_relu", [x], {}, act_type="relu")
            x = symbol.node("Dropout", f"{name}_dropout", [x], {}, p=0.5)
    return symbol


def external(folder: Path, gigabytes: str) -> None:
    """An ONNX model of opset 11 with its weights in one file beside it.

    Every layer holds operators that later opsets changed: Softmax, Squeeze, Unsqueeze, Dropout.
    """
    import onnx
    from onnx import TensorProto, helper

    nodes, weights, x = [], [], "x"
    with open(folder / "model.onnx.data", "wb") as file:
        for i in range(4 * int(gigabytes)):
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=(WIDE, WIDE))
            weight.data_location = TensorProto.EXTERNAL
            entries = {"location": "model.onnx.data", "offset": file.tell()}
            entries["length"] = write_random(file, (WIDE, WIDE))
            for key, value in entries.items():
                weight.external_data.add(key=key, value=str(value))
            weights.append(weight)
            nodes += [
                helper.make_node("MatMul", [x, f"w{i}"], [f"a{i}"]),
                helper.make_node("Softmax", [f"a{i}"], [f"b{i}"], axis=1),
                helper.make_node("Dropout", [f"b{i}"], [f"c{i}"]),
                helper.make_node("Unsqueeze", [f"c{i}"], [f"d{i}"], axes=[0]),
                helper.make_node("ReduceSum", [f"d{i}"], [f"e{i}"], axes=[0], keepdims=1),
                helper.make_node("Squeeze", [f"e{i}"], [f"f{i}"], axes=[0]),
            ]
            x = f"f{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", WIDE]) for n in ("x", x)]
    graph = helper.make_graph(nodes, "wide", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    onnx.save(model, folder / "model.onnx")


KINDS = {f.__name__: f for f in (chain, external, gluon, wide)}

if __name__ == "__main__":
    kind, place, *rest = sys.argv[1:]
    KINDS[kind](Path(place), *rest)
