"""Measure with which element types LiteRT's kernels are right, by operator of the IR.

    python -m conformance.litert_kernels

Small graphs of one operator are written with each element type that the standard has for its first
operand, whether the table has it or not, and run with both sets of kernels beside onnx.reference,
or ONNX Runtime where that raises an error.
"""

from __future__ import annotations

import tempfile
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from onnx.reference import ReferenceEvaluator

from serde.bridges.litert import LitertWorker
from serde.errors import SerdeError
from serde.formats.onnx.from_ir import from_ir as onnx_from_ir
from serde.formats.onnx.writer import to_proto
from serde.formats.tflite.encode import encode
from serde.formats.tflite.from_ir import lower
from serde.formats.tflite.legalize import CONTROL_FLOW, tflite_target
from serde.formats.tflite.support_table import STORED
from serde.formats.tflite.target import writes
from serde.ir.graph import IR_OPSET, DType, Graph
from serde.spec import schema
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.traits import RESHAPES
from testing.onnx_live import PLAIN
from testing.onnx_live import run as run_graph

PAGE = Path(__file__).parents[1] / "formats" / "tflite" / "support_table.py"
# Operators that CAST or a copy of bytes are for, those of scales, and those with subgraphs.
EVERY = RESHAPES | CONTROL_FLOW | {"BitCast", "Cast", "DequantizeLinear", "QuantizeLinear"}
MARK = 'MEASURED = """\\\n'


class Form(NamedTuple):
    """How an operator is called: operands of the type, constants behind them, attributes."""

    operands: int = 1
    constants: tuple[Any, ...] = ()
    attrs: Mapping[str, Any] = {}
    shape: tuple[int, ...] = (2, 3)


TWO = Form(2)
AXES = Form(1, (np.asarray([1]),))
WINDOW = {"kernel_shape": (2, 2), "pads": (1, 1, 1, 1)}
SMALL = frozenset({"Pow", "ReduceMean"})  # what is undefined beyond the range of a type
FORMS = {
    **dict.fromkeys(
        "Add Sub Mul Div Max Min Mod Pow And Or Equal Greater GreaterOrEqual Less LessOrEqual "
        "BitwiseXor PRelu".split(), TWO,
    ),
    **dict.fromkeys("ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum".split(), AXES),
    "MatMul": Form(2, shape=(3, 3)), "Gemm": Form(2, shape=(3, 3)),
    "Concat": Form(2, (), {"axis": 1}), "CumSum": Form(1, (np.asarray(1),)),
    "Gather": Form(1, (np.asarray([1, -1]),), {"axis": 1}),
    "GatherND": Form(1, (np.asarray([[1, -1]]),)),
    "Slice": Form(1, (np.asarray([2, 0]), np.asarray([-9, 2]), np.asarray([1, 0]),
                      np.asarray([-1, 1]))),
    "Split": Form(1, (np.asarray([1, 2]),), {"axis": 1}),
    "Transpose": Form(1, (), {"perm": (1, 0)}),
    "Expand": Form(1, (np.asarray([2, 2, 3]),)), "Tile": Form(1, (np.asarray([2, 1]),)),
    "Pad": Form(1, (np.asarray([0, 1, 2, 0]),)), "TopK": Form(1, (np.asarray([2]),)),
    "MaxPool": Form(1, (), WINDOW, (1, 2, 3, 4)), "AveragePool": Form(1, (), WINDOW, (1, 2, 3, 4)),
    "DepthToSpace": Form(1, (), {"blocksize": 2}, (1, 4, 2, 2)),
    "SpaceToDepth": Form(1, (), {"blocksize": 2}, (1, 4, 2, 2)),
    "Resize": Form(1, (None, np.float32([1, 1, 2, 2])), {
        "mode": "nearest", "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor"}, (1, 1, 2, 3)),
}  # fmt: skip
OUTPUTS = {"Split": 2, "TopK": 2}


def make_graph(op: str, dtype: DType) -> tuple[Graph, list[Any]]:
    """A graph of one operator, and arrays for its inputs."""
    form, draws = FORMS.get(op, Form()), np.random.default_rng(0)
    g = OnnxBuilder(op)
    arrays = [draw(draws, dtype, form.shape, low=1 if at else -5) for at in range(form.operands)]
    if dtype.kind in "iu" and op not in SMALL:  # integers wrap around
        bounds = np.iinfo(dtype.numpy)
        arrays[0].flat[:2] = bounds.max, bounds.min + (op == "Div")
    inputs = [g.input(f"x{at}", dtype, form.shape) for at in range(form.operands)]
    operands = [*inputs, *(c if c is None else g.const(c) for c in form.constants)]
    if op == "Where":
        operands = [g.const(np.asarray([[True, False, True]])), inputs[0], inputs[0]]
    elif op == "Clip":
        operands += [g.const(np.asarray(n, dtype.numpy)) for n in (1, 3)]
    elif op in ("Conv", "ConvTranspose"):
        raise SerdeError("a layer of floats")
    made = g.emit(op, operands, form.attrs, OUTPUTS.get(op, 1))
    outputs = made if isinstance(made, tuple) else (made,)
    return Graph(op, tuple(inputs), outputs, tuple(g.nodes)), arrays


def draw(draws: np.random.Generator, dtype: DType, shape: tuple[int, ...], low: int) -> Any:
    """Numbers of a type, whole ones among them where it has a sign."""
    if dtype is DType.BOOL:
        return draws.random(shape) < 0.5
    low = max(low, 1) if dtype.kind == "u" else low
    numbers = draws.integers(low, 6, shape)
    if dtype.kind == "f":
        return (numbers / 8 + 0.01).astype(dtype.numpy)
    return numbers.astype(dtype.numpy)


def is_right(worker: LitertWorker, op: str, dtype: DType, folder: str) -> bool:
    """Whether both sets of kernels compute an operator on a type as onnx.reference does."""
    target = tflite_target()
    lower_all = replace(target, supports={name: {} for name in target.supports or ()})
    try:
        graph, arrays = make_graph(op, dtype)
        done = lower(graph, lower_all)
        path = f"{folder}/{op}_{dtype.value}.tflite"
        encode(done, path)
        got = [worker.run(path, arrays, delegates=d) for d in (True, False)]
    except (SerdeError, KeyError):
        return False
    feeds = {v.name: a for v, a in zip(graph.inputs, arrays, strict=True)}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = compute_expected(graph, feeds)
        return expected is not None and all(
            (a.dtype, a.shape) == (b.dtype, b.shape)
            and np.allclose(a, b, 1e-4, 1e-5, equal_nan=True)
            for results in got
            for a, b in zip(results, expected, strict=True)
        )


def compute_expected(graph: Graph, feeds: Mapping[str, Any]) -> Any:
    """What onnx.reference computes, or ONNX Runtime where it cannot; None where neither does."""
    try:
        return ReferenceEvaluator(to_proto(onnx_from_ir(graph, IR_OPSET))).run(None, feeds)
    except Exception:  # it raises what it likes
        with suppress(Exception):
            return run_graph(graph, feeds, level=PLAIN)
    return None


def measure(ops: list[str]) -> Iterator[tuple[str, str]]:
    """The types of each operator, in words; what is float32 only is not named."""
    worker = LitertWorker()
    with tempfile.TemporaryDirectory() as folder:
        for op in ops:
            types = schema.operator(op, IR_OPSET).raw.inputs[1 if op == "Where" else 0].types
            allowed = [d for d in sorted(STORED, key=lambda d: d.value) if _spell(d) in types]
            right = []
            for dtype in allowed:
                is_so = is_right(worker, op, dtype, folder)
                right += [dtype.value] if is_so else []
                worker = worker if is_so else LitertWorker()  # it may have ended
            if right != ["float32"]:
                yield op, " ".join(right)


def _spell(dtype: DType) -> str:
    return f"tensor({ {'float32': 'float', 'float64': 'double'}.get(dtype.value, dtype.value) })"


def join_table(measured: Iterator[tuple[str, str]]) -> str:
    """The text of the table: operators of the same types are one paragraph."""
    groups = defaultdict(list)
    for op, types in measured:
        groups[types].append(op)
    lines = (f"{types}: {' '.join(ops)}" for types, ops in sorted(groups.items()) if types)
    return "\n".join(textwrap.fill(line, 100, subsequent_indent="  ") for line in lines)


def list_operators() -> list[str]:
    """The operators that are measured."""
    return sorted({*writes.list_standard()} - EVERY)


def main() -> None:
    """Write the table into the module."""
    table = join_table(measure(list_operators()))
    head, _, rest = PAGE.read_text().partition(MARK)
    tail = rest[rest.index('"""\n') :]
    PAGE.write_text(f"{head}{MARK}{table}\n{tail}")


if __name__ == "__main__":
    main()
