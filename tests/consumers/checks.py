"""What the tests of each consumer check of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.numpy_helper import from_array

import serde
from conformance.matrix import target_of
from conformance.onnx_nodes import ConstantNodeTests
from conformance.operator_support import draw_regions
from testing import networks
from testing.consumers.runtimes import run
from testing.onnx_live import error, model_of, run_model

# BatchNormalization of float16 with statistics of float32, as ``check_form`` takes it.
MIXED_STATISTICS: tuple[str, str, dict[str, Any]] = (
    "(float[2,3,4] x) => (float[2,3,4] y)",
    "h = Cast<to = 10>(x) n = BatchNormalization<epsilon = 0.0>(h, s, s, s, s) y = Cast<to = 1>(n)",
    {
        "s": np.array([1, 4, 0.25], np.float32),
        "x": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    },
)


def check_node_test(name: str, consumer: str) -> None:
    """The consumer computes what ONNX's node test expects."""
    sample, target = ConstantNodeTests().sample(name), target_of(consumer)
    for feeds, expected in sample.data:
        assert sample.differs(expected, target.run(sample.graph, feeds, "")) is None


def check_network(name: str, consumer: str, folder: Path, batch: int | None = None) -> None:
    """The consumer computes what MXNet does for one of its networks.

    The batch is named unless it is given.
    """
    network = networks.build(name, networks.smallest(name) if name in networks.VISION else None)
    feeds = networks.feeds(network, batch or 2)
    expected = networks.compute(network, feeds)
    symbol, _ = networks.export(network, folder)
    shapes = {n: (s, feeds[n].dtype) for n, s in networks.shapes(network).items()}
    inputs = shapes if batch is None else feeds
    serde.convert(symbol, folder / "m.onnx", inputs=inputs, profile=consumer)
    got = run(consumer, str(folder / "m.onnx"), feeds)
    assert max(error(a, b) for a, b in zip(got, expected, strict=True)) < 1e-4


def check_model(
    signature: str, body: str, feeds: Mapping[str, Any], consumer: str, folder: Path,
    opset: int = 17, **held: Any,
) -> None:  # fmt: skip
    """The consumer computes what ONNX Runtime does for a model in text form."""
    version = {"opset": opset, "ir_version": 8 if opset < 19 else 10}
    model = model_of(f"g {signature} {{ {body} }}", **version)
    model.graph.initializer.extend(from_array(np.asarray(a), n) for n, a in held.items())
    onnx.save(model, folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx", profile=consumer)
    got = run(consumer, str(folder / "b.onnx"), feeds)
    for a, b in zip(got, run_model(model, feeds), strict=True):
        assert error(a, b) < 1e-5


def quantized_forms(samples: int) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Bytes that stand between floats, for consumers without them, as ``check_form`` takes them."""
    x = f"(float[{samples},3,4,4] x)"
    return {
        "bytes without a zero point": (
            f"{x} => (float[{samples},3,4,4] y)",
            "q = QuantizeLinear(x, s) y = DequantizeLinear(q, s)",
            {"s": np.float32(0.02)},
        ),
        "quantized elements that move": (
            f"{x} => (float[{samples},2,2,3] y)",
            "q = QuantizeLinear<axis = 1>(x, s, z) "
            "p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(q) "
            "t = Transpose<perm = [0, 2, 3, 1]>(p) y = DequantizeLinear<axis = 3>(t, s, z)",
            {"s": np.array([0.5, 0.1, 0.03], np.float32), "z": np.array([3, -2, 0], np.int8)},
        ),
        "weights of int8": (
            f"{x} => (float[{samples},2,4,4] y)",
            "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) f = DequantizeLinear(w, v) "
            "c = Conv(d, f) r = QuantizeLinear(c, s, z) y = DequantizeLinear(r, s, z)",
            {
                "s": np.float32(0.02),
                "z": np.uint8(128),
                "v": np.float32(0.01),
                "w": np.array([5, -7, 100, -128, 127, 0], np.int8).reshape(2, 3, 1, 1),
            },
        ),
    }


def check_form(
    signature: str, body: str, held: Mapping[str, Any], consumer: str, folder: Path, opset: int = 17
) -> None:
    """The consumer computes a model whose inputs are random; ``held`` has constants and feeds."""
    draws = np.random.default_rng(0)
    model = model_of(f"g {signature} {{ {body} }}", opset=opset, ir_version=8)
    feeds, constants = {}, {n: np.asarray(a) for n, a in held.items()}
    for value in model.graph.input:
        of = value.type.tensor_type
        shape = [d.dim_value or 6 for d in of.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(of.elem_type)
        drawn = draws.standard_normal(shape, np.float32) * (1 if dtype.kind == "f" else 9)
        feeds[value.name] = constants.pop(value.name, drawn.astype(dtype))
    check_model(signature, body, feeds, consumer, folder, opset, **constants)


def check_recurrent(op: str, attributes: str, consumer: str, folder: Path) -> None:
    """The consumer computes a recurrent layer of these attributes."""
    draws, gates = np.random.default_rng(0), {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    sizes = {"x": (5, 2, 3), "w": (1, 4 * gates, 3), "r": (1, 4 * gates, 4), "b": (1, 8 * gates)}
    drawn = {n: draws.standard_normal(s, np.float32) / 2 for n, s in sizes.items()}
    feeds = {"x": drawn.pop("x")}
    body = f"y = {op}<hidden_size = 4, {attributes}>(x, w, r, b)"
    signature = "(float[5,2,3] x) => (float[5,1,2,4] y)"
    check_model(signature, body, feeds, consumer, folder, **drawn)


def refusals(signature: str, body: str, consumer: str, folder: Path, opset: int = 17) -> list[str]:
    """Why a model in text form is refused."""
    model = model_of(f"g {signature} {{ {body} }}", opset=opset, ir_version=8)
    onnx.save(model, folder / "m.onnx")
    return [p.reason for p in serde.check(folder / "m.onnx", to=consumer).problems]


def pooled_regions() -> tuple[str, str, dict[str, Any]]:
    """MaxRoiPool, of which ONNX has no node test, as ``check_form`` takes it."""
    return (
        "(float[2,3,13,11] x, float[6,5] regions) => (float[6,3,2,3] y)",
        "y = MaxRoiPool<pooled_shape = [2, 3], spatial_scale = 0.73>(x, regions)",
        {"regions": draw_regions(np.random.default_rng(0))},
    )
