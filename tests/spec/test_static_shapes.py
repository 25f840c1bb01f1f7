"""Shapes that are computed without onnx are those that onnx infers."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from serde.errors import SerdeError
from serde.ir.graph import DType, Tensor, Value
from serde.spec import canonicalize, inference, schema, static_shapes

OPSETS = (6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 21, 28)
TYPES = (
    DType.FLOAT32, DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.BFLOAT16, DType.UINT8, DType.BOOL,
)  # fmt: skip
SIZES = (1, 2, 3, 4, 5, 8, "N", "M", None, 0)
Call = tuple[list[tuple[Any, ...]], dict[str, Any]]  # shapes of operands, and attributes


def draw_shape(draw: random.Random, rank: int) -> tuple[Any, ...]:
    return tuple(draw.choice(SIZES[:8] if draw.random() < 0.85 else SIZES) for _ in range(rank))


def draw_window(draw: random.Random, op: str, x: tuple[Any, ...], known: Any) -> Call:
    sides = max(len(x) - 2, 0)
    kernel = tuple(draw.choice((1, 2, 3)) for _ in range(sides + (draw.random() > 0.95)))
    attrs: dict[str, Any] = {"kernel_shape": kernel} if draw.random() < 0.9 else {}
    for name, choices in (("strides", (1, 2, 3)), ("dilations", (1, 1, 2))):
        if draw.random() < 0.7 and name in known:
            attrs[name] = tuple(draw.choice(choices) for _ in range(sides))
    if draw.random() < 0.7:
        attrs["pads"] = tuple(draw.choice((0, 0, 1, 2)) for _ in range(2 * sides))
    if op != "Conv":
        if "ceil_mode" in known and draw.random() < 0.3:
            attrs["ceil_mode"] = 1
        return [x], attrs
    group = attrs["group"] = draw.choice((1, 1, 1, 2))
    channels = x[1] if len(x) > 1 and isinstance(x[1], int) else 2
    inward = (channels // group or 1) if draw.random() < 0.9 else 3
    w = (draw.choice((2, 4, 3)), inward, *kernel)
    bias = [(w[0],) if draw.random() < 0.8 else (3,)] if draw.random() < 0.4 else []
    return [x, w, *bias], attrs


def draw_product(draw: random.Random, op: str, x: tuple[Any, ...]) -> Call:
    if op == "MatMul":
        b = list(draw_shape(draw, draw.choice((1, 2, len(x)))))
        if x and len(b) > 1 and draw.random() < 0.8:
            b[-2] = x[-1]
        return [x, tuple(b)], {}
    attrs = {name: draw.choice((0, 1)) for name in ("transA", "transB")}
    operands = [x, draw_shape(draw, 2)]
    if draw.random() < 0.6:
        operands[0] = x = (*x, 2, 2)[:2]
        inner = x[0] if attrs["transA"] else x[1]
        operands[1] = (3, inner) if attrs["transB"] else (inner, 3)
    if draw.random() < 0.4:
        operands.append(draw.choice([(3,), (1,), (), (2, 3)]))
    return operands, attrs


def draw_call(draw: random.Random, op: str, known: Any) -> Call:
    """Operands and attributes of which most, not all, are valid."""
    rank = draw.choice((0, 1, 2, 3, 4, 4, 4, 5))
    x = draw_shape(draw, rank)
    if op in ("Conv", "MaxPool", "AveragePool"):
        return draw_window(draw, op, x, known)
    if op in ("MatMul", "Gemm"):
        return draw_product(draw, op, x)
    if op == "BatchNormalization":
        channels = x[1] if rank > 1 else 2
        return [x, *((channels if draw.random() < 0.9 else 3,) for _ in range(4))], {}
    if static_shapes.SHAPES.get(op) is static_shapes.SHAPES["Add"]:
        return [x, x if draw.random() < 0.4 else draw_shape(draw, draw.choice((0, 1, 2, rank)))], {}
    if op == "LayerNormalization":
        axis = draw.choice((-1, 1, 2, -2))
        return [x, x[axis:] if draw.random() < 0.8 else draw_shape(draw, 1)], {"axis": axis}
    if op in ("Softmax", "LogSoftmax"):
        return [x], {"axis": draw.choice((-1, 1, 0, 2, 7))}
    if op == "Concat":
        others = [(*x[:-1], draw.choice((1, 2))) if x and draw.random() < 0.8 else x, x]
        return [x, *others[: draw.choice((0, 1, 2))]], {"axis": draw.choice((rank - 1, -1, 1, 0))}
    if op == "Clip":
        return [x, *(draw.choice(((), (), (1,))) for _ in range(draw.choice((0, 1, 2))))], {}
    if op == "Flatten":
        return [x], {"axis": draw.choice((0, 1, 2, rank, -1))}
    if op == "Transpose" and draw.random() < 0.9:
        perm = draw.sample(range(rank), rank)
        return [x], {"perm": tuple(perm if draw.random() < 0.95 else perm[:-1])}
    return [x], {}


@pytest.mark.parametrize("seed", range(4))
def test_shapes_of_random_calls_are_those_that_onnx_infers(seed, monkeypatch):
    draw, counts = random.Random(seed), Counter()
    infer_static = static_shapes.infer_static
    monkeypatch.setattr(static_shapes, "infer_static", lambda *call: None)  # onnx alone
    for _ in range(1200):
        op, opset = draw.choice(sorted(static_shapes.SHAPES)), draw.choice(OPSETS)
        operator = schema.find(op, opset)
        if operator is None:
            continue
        shapes, attrs = draw_call(draw, op, operator.attributes)
        dtype = draw.choice(TYPES)
        values = tuple(Value(f"v{i}", dtype, shape) for i, shape in enumerate(shapes))
        attrs = {n: v for n, v in attrs.items() if n in operator.attributes}
        try:
            attrs = canonicalize.complete_attributes(operator, values, attrs)
        except SerdeError:
            continue
        known = infer_static(operator, values, attrs, 1)
        if known is None:
            counts["left to onnx"] += 1
            continue
        result = inference.infer(operator, opset, values, attrs, 1)[0]
        assert known == (result.dtype, result.shape), (op, opset, shapes, attrs)
        counts["computed"] += 1
    assert counts["computed"] > 250


@pytest.mark.parametrize(
    "shape, target, allowzero, expected",
    [
        ((2, 6), (3, 4), 0, (3, 4)),
        ((2, 6), (3, -1), 0, (3, 4)),
        ((2, 6), (0, -1, 2), 0, (2, 3, 2)),
        ((2, 6), (5, -1), 0, None),
        ((2, 6), (3, 5), 0, None),
        ((2, 6), (-1, -1), 0, None),
        ((2, 6), (0, 6), 1, None),
        (("N", 6), (-1, 3), 0, None),
        ((0, 6), (0, 6), 0, None),
        ((2, 6), (2, 2, 3, 0), 0, None),
        (("N", 6, 4), (0, -1), 0, ("N", 24)),
        (("N", 6, "M"), (0, 6, 0), 0, ("N", 6, "M")),
        (("N", 6), (0, 3), 0, None),
        (("N", 6), (0, 6), 1, None),
        (("N", "N"), (0, -1), 0, ("N", "N")),
        (("N", 6, 4), (-1, 24), 0, ("N", 24)),
        (("N", 6, 4), (4, -1, 6), 0, (4, "N", 6)),
        (("N", 6, "M"), (0, -1, 6), 0, ("N", "M", 6)),
        (("N", 6, "M"), (-1, 6), 0, None),
        (("N", 6), (6, "N"), 0, None),
    ],
)
def test_reshapes_of_known_shapes(shape, target, allowzero, expected):
    assert static_shapes.reshape(shape, target, allowzero) == expected


def test_reshapes_as_onnx_infers_them(monkeypatch):
    draw, compared = random.Random(3), 0
    monkeypatch.setattr(static_shapes, "infer_static", lambda *call: None)  # onnx alone
    operator = schema.operator("Reshape", 21)
    for _ in range(3000):
        x = tuple(draw.choice((1, 2, 3, 4, 6, "N", "M")) for _ in range(draw.randint(1, 4)))
        target = [draw.choice((0, 0, 0, -1, 2, 3, 4, 6)) for _ in range(draw.randint(1, 4))]
        shape = static_shapes.reshape(x, target, 0)
        if shape is None:
            continue
        array = np.array(target, np.int64)
        operand = Value("shape", DType.INT64, array.shape, Tensor.of(array))
        values = Value("x", DType.FLOAT32, x), operand
        (result,) = inference.infer(operator, 21, values, {"allowzero": 0}, 1)
        assert result.shape == shape, (x, target)
        compared += "N" in shape or "M" in shape
    assert compared > 100
