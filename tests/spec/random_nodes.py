"""Random nodes of all operators with extreme sizes, contents and attributes.

``python -m tests.spec.random_nodes FIRST LAST`` infers and builds those of a range of seeds, and
prints the seed and the operator before each: where the process ends, the last line tells of what.
"""

from __future__ import annotations

import random
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from serde.errors import SerdeError
from serde.ir.graph import DType, Tensor, Value
from serde.spec import inference, schema
from serde.spec.onnx_builder import OnnxBuilder

SMALL = (0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, 64)
SIZES = (*SMALL, 1000, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, None, "N", "M")
NEGATIVE = (-1, -2, -(2**31), -(2**63))
FEW = (0, 0, 1, 1, 2, 3, -1, -2, -3, 4, 7, 16)
INTS = (*FEW, 64, 65, 1000, 10**6, 10**9, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, 1e30, -1e30, float("inf"), float("nan"), 1e-30, 3e38)
TEXTS = (
    "", "NOTSET", "SAME_UPPER", "VALID", "linear", "nearest", "cubic", "sum", "none", "reverse",
    "bidirectional", "add", "a,b->ab", "ij,jk->ik", "...i,...i->...", "x" * 1000, "\0", "DCR",
    "constant", "reflect", "TF", "->", "...", "i", "ii->i", "not_larger", "wrap",
)  # fmt: skip
CONTAINERS = (
    ("sequence",), ("optional",), ("optional", "sequence"), ("map:int64",), ("sparse",),
)  # fmt: skip
LENGTHS = (0, 1, 2, 2, 3, 4, 4, 5, 6, 8, 65)
REFUSALS = (SerdeError, TypeError, ValueError, LookupError)  # the driver reports all of them
SLOW = 1.0  # seconds of processor time


def draw_shape(r: random.Random) -> tuple[Any, ...] | None:
    if r.random() < 0.08:
        return None
    rank = r.choice((0, 1, 1, 2, 2, 3, 4, 4, 5, 6) if r.random() < 0.97 else (7, 8, 64, 65, 100))
    pool = SMALL if r.random() < 0.6 else SIZES
    shape = [r.choice(pool) for _ in range(rank)]
    if shape and r.random() < 0.15:
        shape[r.randrange(rank)] = r.choice(NEGATIVE)
    return tuple(shape)


def draw_array(r: random.Random, dtype: DType) -> np.ndarray[Any, Any] | None:
    shape = r.choice(((), (1,), (2,), (3,), (4,), (5,), (0,), (2, 2), (1, 1), (8,), (64,), (65,)))
    pool: tuple[Any, ...] = FEW if r.random() < 0.5 else INTS
    if dtype.kind in "iu" and dtype.bits >= 8:
        info = np.iinfo(dtype.numpy)
        pool = tuple(min(max(n, info.min), info.max) for n in pool)
    elif dtype.kind == "f" and dtype.bits >= 16:
        pool = FLOATS
    elif dtype.kind == "S":
        pool = TEXTS
    elif dtype.kind != "b":
        return None
    with np.errstate(all="ignore"):
        elements = [r.choice(pool) for _ in range(int(np.prod(shape)))]
        return np.array(elements, dtype.numpy).reshape(shape)


def draw_value(r: random.Random, at: int, formal: schema.Formal) -> Value:
    types = sorted(formal.types, key=lambda d: d.value)
    dtype = r.choice(types if types and r.random() > 0.02 else list(DType))
    array = draw_array(r, dtype) if r.random() < 0.5 else None
    if array is not None:
        return Value(f"i{at}", dtype, array.shape, Tensor.of(array))
    container = r.choice(CONTAINERS) if r.random() < 0.05 else ()
    return Value(f"i{at}", None if r.random() < 0.02 else dtype, draw_shape(r), container=container)


def draw_attribute(r: random.Random, kind: str) -> Any:
    pools: dict[str, tuple[Any, ...]] = {
        "INT": FEW if r.random() < 0.6 else INTS, "FLOAT": FLOATS, "STRING": TEXTS,
    }  # fmt: skip
    if kind in pools:
        return r.choice(pools[kind])
    if kind.removesuffix("S") in pools:
        length = r.choice(LENGTHS) if r.random() < 0.95 else 5000
        return tuple(r.choice(pools[kind[:-1]]) for _ in range(length))
    if kind == "TYPE_PROTO":
        return inference.type_proto(DType.FLOAT32, (2, 3))
    if kind in ("TENSOR", "SPARSE_TENSOR"):
        dtype = r.choice((np.float32, np.int64, np.int32, np.float16))
        return Tensor.of(np.array([r.choice((0, 1, 2))] * r.choice((0, 1, 2)), dtype))
    return None


def versions() -> list[schema.Operator]:
    """Every version of every operator."""
    found = {(op, v.since): v for op in schema.names() for opset in range(1, 29)
             if (v := schema.find(op, opset)) is not None}  # fmt: skip
    return list(found.values())


def draw_node(r: random.Random, operator: schema.Operator) -> tuple[list[Any], dict[str, Any], int]:
    """Operands, attributes and the number of outputs."""
    is_variadic = bool(operator.inputs) and operator.inputs[-1].variadic
    most = len(operator.inputs) + (r.choice((0, 1, 3)) if is_variadic else 0)
    least = sum(not f.optional for f in operator.inputs) if r.random() > 0.05 else 0
    inputs: list[Any] = []
    for at in range(r.randint(min(least, most), most)):
        is_missing = r.random() < (0.3 if operator.input(at).optional else 0.02)
        inputs.append(None if is_missing else draw_value(r, at, operator.input(at)))
    attrs = {}
    for name, declared in operator.raw.attributes.items():
        if declared.required or r.random() < 0.6:
            attrs[name] = draw_attribute(r, str(declared.type.name))
    outputs = r.choice((1, 1, 1, 2, 3, len(operator.outputs) or 1, 200 if r.random() < 0.1 else 1))
    return inputs, {n: v for n, v in attrs.items() if v is not None}, outputs


def run(first: int, last: int) -> None:
    operators = versions()
    for seed in range(first, last):
        r = random.Random(seed)
        operator = operators[seed % len(operators)]
        inputs, attrs, outputs = draw_node(r, operator)
        print(seed, operator.name, operator.since, flush=True)
        start = time.process_time()
        with suppress(*REFUSALS):
            inference.infer(operator, operator.since, tuple(inputs), attrs, outputs)
        with suppress(*REFUSALS):
            OnnxBuilder("g", operator.since).emit(operator.name, inputs, attrs, outputs)
        if (seconds := time.process_time() - start) > SLOW:
            print(f"slow: {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
