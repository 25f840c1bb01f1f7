"""Models as MXNet 2 saves them: every attribute written, ``None`` for those that are not given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
from serde.errors import Unconvertible
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.to_ir import to_ir
from serde.passes.cut_inputs import with_inputs
from testing.mxnet.written import node, npz_bytes, symbol, variable, zip_bytes
from testing.mxnet_live import run_symbol

FLAGS = {"version": 20000, "is_np_shape": 1}
# What MXNet 2 writes of attributes that MXNet 1 has not, or not with this value.
YOUNGER = {
    "Pooling": {"output_size": "None", "count_include_pad": "None", "p_value": "None"},
    "Convolution": {"cudnn_tune": "None", "cudnn_off": "0"},
    "BatchNorm": {"min_calib_range": "None", "max_calib_range": "None", "cudnn_off": "0"},
    "Flatten": {"__profiler_scope__": "<unk>:"},
}
LAYERS: list[tuple[str, dict[str, str], dict[str, tuple[int, ...]]]] = [
    ("Convolution", {"kernel": "[5,5]", "stride": "[1,1]", "dilate": "[1,1]", "pad": "[2,2]",
                     "num_filter": "6", "num_group": "1", "no_bias": "0", "layout": "NCHW"},
     {"0.weight": (6, 1, 5, 5), "0.bias": (6,)}),
    ("BatchNorm", {"eps": "1e-05", "axis": "1", "fix_gamma": "0", "use_global_stats": "0",
                   "momentum": "0.9", "output_mean_var": "0"},
     dict.fromkeys(("1.gamma", "1.beta", "1.running_mean", "1.running_var"), (6,))),
    ("Activation", {"act_type": "sigmoid"}, {}),
    ("Pooling", {"kernel": "[2,2]", "stride": "[2,2]", "pad": "[0,0]", "pool_type": "max",
                 "global_pool": "0", "pooling_convention": "valid", "layout": "NCHW"}, {}),
    ("Pooling", {"kernel": "[1,1]", "stride": "[1,1]", "pad": "[0,0]", "pool_type": "avg",
                 "global_pool": "1", "pooling_convention": "valid", "layout": "NCHW"}, {}),
    ("Flatten", {}, {}),
    ("FullyConnected", {"num_hidden": "10", "flatten": "1", "no_bias": "0"},
     {"2.weight": (10, 6), "2.bias": (10,)}),
]  # fmt: skip
NPX = {"Convolution": "convolution", "BatchNorm": "batch_norm", "Activation": "activation",
       "Pooling": "pooling", "Flatten": "batch_flatten",
       "FullyConnected": "fully_connected"}  # fmt: skip


def network(younger: bool, npx: bool = False) -> str:
    """The network as MXNet 2, or 1, saves it."""
    nodes: list[Any] = [variable("data")]
    last = 0
    for number, (op, attrs, params) in enumerate(LAYERS):
        first = len(nodes)
        nodes += [variable(n) for n in params]
        more = YOUNGER.get(op, {}) if younger else {}
        name = f"_npx_{NPX[op]}" if npx else op
        own = range(first, len(nodes))
        nodes.append(node(name, f"node_{number}", [last, *own], **attrs, **more))
        last = len(nodes) - 1
    return symbol(nodes, **FLAGS) if younger else symbol(nodes)


@pytest.mark.parametrize("npx", [False, True], ids=["operators of nn", "operators of npx"])
def test_a_convolutional_network(tmp_path: Path, npx: bool) -> None:
    generator = np.random.default_rng(0)
    arrays = {n: generator.uniform(0.5, 1.5, shape).astype("float32")
              for _, _, params in LAYERS for n, shape in params.items()}  # fmt: skip
    (tmp_path / "net-symbol.json").write_text(network(True, npx))
    (tmp_path / "net-0000.params").write_bytes(npz_bytes(arrays))
    target = tmp_path / "net.onnx"
    serde.convert(tmp_path / "net", target)
    data = generator.standard_normal((2, 1, 28, 28)).astype("float32")
    (expected,) = run_symbol(network(False), arrays, {"data": data})
    (y,) = onnxruntime.InferenceSession(str(target)).run(None, {"data": data})
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


# Attributes that are not given, though MXNet 1 would not take None for them.
UNSET: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("Pooling", {"kernel": "(2, 2)", "output_size": "None"}, (1, 2, 4, 4)),
    ("softmax", {"axis": "None", "temperature": "None", "dtype": "None", "use_length": "None"},
     (2, 3)),
    ("LRN", {"nsize": 3, "alpha": "None", "beta": "None"}, (1, 4, 3, 3)),
    ("sum", {"axis": "None", "keepdims": "None", "exclude": "None", "initial": "None"}, (2, 3)),
    ("clip", {"a_min": 0, "a_max": 1, "something_new": "None"}, (2, 3)),
    ("SliceChannel", {"num_outputs": 3, "axis": "None", "squeeze_axis": "None"}, (2, 3)),
]  # fmt: skip


def convert_node(op: str, attrs: dict[str, Any], shape: tuple[int, ...]) -> str:
    text = symbol([variable("data"), node(op, "y", [0], **attrs)], **FLAGS)
    graph = decode_symbol(parse_symbol(text), None, "m")
    return str(to_ir(with_inputs(graph, {"data": shape})))


@pytest.mark.parametrize(("op", "attrs", "shape"), UNSET, ids=str)
def test_attributes_that_are_none_are_not_given(op, attrs, shape) -> None:
    non_none = {n: v for n, v in attrs.items() if v != "None"}
    assert convert_node(op, attrs, shape) == convert_node(op, non_none, shape)


@pytest.mark.parametrize("attrs", [{"num_outputs": "None"}, {"num_outputs": 3, "new": "1"}])
def test_what_is_required_or_unknown_is_refused(attrs) -> None:
    with pytest.raises(Unconvertible):
        convert_node("SliceChannel", attrs, (2, 3))


def test_a_model_without_parameters(tmp_path: Path) -> None:
    nodes = [variable("data"), node("relu", "y", [0])]
    (tmp_path / "net-symbol.json").write_text(symbol(nodes, **FLAGS))
    (tmp_path / "net-0000.params").write_bytes(zip_bytes({}))
    report = serde.convert(tmp_path / "net", tmp_path / "y.onnx", inputs={"data": (2, 3)})
    assert report.notes == []


X = np.random.default_rng(3).standard_normal((3, 4, 5), np.float32)
# Attributes as the interface of MXNet 2.0 that writes them spells them, and what NumPy computes.
SPELLED: dict[str, tuple[str, dict[str, str], Any]] = {
    "sort": ("sort", {"axis": "1", "is_ascend_s": "1"}, np.sort(X, 1)),
    "argsort": ("argsort", {"axis": "1", "is_ascend_s": "1", "dtype": "int64"}, np.argsort(X, 1)),
    "argsort, the largest first": (
        "argsort", {"axis": "-1", "is_ascend_s": "0", "dtype": "int64"}, np.argsort(-X, -1)
    ),
    "argsort, by its symbol": (
        "argsort", {"axis": "-1", "is_ascend": "False", "dtype": "int64"}, np.argsort(-X, -1)
    ),
    "around": ("_npi_around", {"decimal": "1"}, np.around(X, 1)),
    "around, by its symbol": ("_npi_around", {"decimals": "1"}, np.around(X, 1)),
    "pad": (
        "_npi_pad", {"pad_width": "[[0,0],[1,2],[3,0]]", "mode": "constant",
                     "constant_values": "2", "reflect_type": "even"},
        np.pad(X, ((0, 0), (1, 2), (3, 0)), constant_values=2),
    ),
    "pad with reflections": (
        "_npi_pad", {"pad_width": "[[0,0],[1,2],[3,0]]", "mode": "reflect",
                     "constant_values": "0", "reflect_type": "even"},
        np.pad(X, ((0, 0), (1, 2), (3, 0)), mode="reflect"),
    ),
    "hsplit": (
        "_npi_hsplit", {"axis": "0", "indices": "[]", "sections": "2", "squeeze_axis": "0"},
        np.hsplit(X, 2)[0],
    ),
    "array_split": (
        "_split_v2", {"axis": "2", "indices": "[]", "sections": "3", "squeeze_axis": "0"},
        np.array_split(X, 3, 2)[0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLED)
def test_the_spelling_of_attributes(name: str, tmp_path: Path) -> None:
    op, attrs, expected = SPELLED[name]
    path = tmp_path / "m-symbol.json"
    path.write_text(symbol([variable("x"), node(op, "y", [0], **attrs)], **FLAGS))
    serde.convert(str(path), str(tmp_path / "m.onnx"), inputs={"x": X.shape})
    (got,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": X})
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_a_size_behind_that_of_the_parameters(tmp_path: Path) -> None:
    """As ``npx.random.normal_n`` writes it."""
    sizes = {"loc": "0.0", "scale": "1.0", "size": "(-2, 2, 3)"}
    path = tmp_path / "m-symbol.json"
    path.write_text(
        symbol([variable("x"), node("_npi_normal", "n", [], **sizes), node("_npi_add", "y", [0, 1])],
               **FLAGS)
    )  # fmt: skip
    serde.convert(str(path), str(tmp_path / "m.onnx"), inputs={"x": (2, 3)}, random="onnx")
    (got,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": X[0, :2, :3]})
    assert got.shape == (2, 3)
