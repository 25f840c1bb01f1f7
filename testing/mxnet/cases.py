"""Operator cases: one MXNet operator, run live and through serde, compared.

A table is a list of ``case(op, *inputs, **attributes)`` and ``refuses(…, says=…)``. Each case is
converted with static shapes, with a named batch and with every size named, lowered to each of
``OPSETS``, run in ONNX Runtime with and without its optimizers, and compared with live MXNet in
shape, type and numbers.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from serde.errors import SerdeError, Unconvertible
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.operators import describe
from serde.formats.mxnet.to_ir import to_ir
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import Graph, Shape, Tensor, Value
from serde.ir.replace_uses import replace_values
from serde.legalize.convert import lower_to
from serde.passes import tidy
from serde.passes.cut_inputs import with_inputs
from testing.mxnet.int8 import skip_inexact
from testing.mxnet_live import MXNET_VERSION, live_mxnet, run_op, run_symbol
from testing.onnx_live import LEVELS, OPTIMIZED, run_at

Array = np.ndarray[Any, Any]
OPSETS = (11, 17, 21)
REFERENCE = "onnx.reference"
ATTRS_SINCE = 1200  # releases before it write and read ``attr``
NAMINGS = ("static", "batch", "all")
Oracle = Callable[["Case"], list[Array]]
TOLERANCE = {"float16": 2e-3}  # half precision: both sides round after every step
DEFAULT_TOLERANCE = 1e-4


def live(case: Case) -> list[Array]:
    """What MXNet computes."""
    if case.network is not None:
        feeds = {f"x{i}": x for i, x in enumerate(case.inputs)}
        return run_symbol(_symbol_json(case), {}, feeds, np_shape=case.np_shape)
    return run_op(case.op, case.inputs, case.attrs, case.outputs, np_shape=case.np_shape)[1]


def in_float32(case: Case) -> list[Array]:
    """What MXNet computes in float32, as halves: some operators take no halves on a CPU."""
    wide = [x.astype("float32") if x.dtype == "float16" else x for x in case.inputs]
    return [y.astype("float16") for y in live(case.but(inputs=tuple(wide)))]


def without_onednn(case: Case) -> list[Array]:
    """What MXNet computes in a process where it does not use oneDNN."""
    return _plain_process().submit(live, case.but(oracle=live)).result()


def under(op: str) -> Oracle:
    """What MXNet computes with another operator, where it cannot run this one by itself."""
    return lambda case: live(case.but(op=op))


@cache
def _plain_process() -> ProcessPoolExecutor:
    variable = ("MXNET_MKLDNN_ENABLED", "0")
    return ProcessPoolExecutor(1, get_context("spawn"), initializer=os.putenv, initargs=variable)


@dataclass(frozen=True)
class Case:
    """An operator on given inputs, and what may differ from the rule that all must hold.

    ``oracle`` tells the truth. ``params`` are the inputs that are constants. ``outputs`` counts
    those compared. ``fixed`` says why the rule needs a size that is not named: one of the namings
    is refused so. ``since`` is the lowest opset that can say it. ``gap`` names what ONNX Runtime
    has no kernel for; ONNX's reference implementation is the judge there. ``printed`` is the IR
    with static shapes, as text. ``network`` makes a symbol around the operator, of MXNet and the
    variables ``x0, x1, …``. ``release`` is the number of the MXNet that the file names, ``kernels`` whose
    results are read.
    """

    op: str
    inputs: tuple[Array, ...]
    attrs: Mapping[str, str]
    params: tuple[int, ...] = ()
    outputs: int | None = None
    oracle: Oracle = live
    fixed: str = ""
    since: int = 0
    gap: str = ""
    printed: str = ""
    np_shape: bool = False
    tolerance: float = 0.0
    release: int = MXNET_VERSION
    network: Callable[..., Any] | None = None
    kernels: str = "onednn"

    def but(self, **changes: Any) -> Case:
        """The same case with other expectations."""
        return replace(self, **changes)

    def __str__(self) -> str:
        shapes = " ".join(f"{x.dtype}{list(x.shape)}".replace(" ", "") for x in self.inputs)
        attrs = " ".join(f"{k}={v}".replace(" ", "") for k, v in self.attrs.items())
        return f"{self.op} {shapes} {attrs}".strip()


@dataclass(frozen=True)
class Refusal:
    """An operator that must not be converted, and part of what the error says."""

    case: Case
    says: str

    @property
    def op(self) -> str:
        """The operator."""
        return self.case.op

    def __str__(self) -> str:
        return f"refused {self.case}"


def case(op: str, /, *inputs: Array, **attrs: Any) -> Case:
    """A case; parameters (weights, running means) are constants, as in a model file."""
    params = tuple(i for i in describe(op).parameters if i < len(inputs))
    return Case(op, inputs, {k: str(v) for k, v in attrs.items()}, params)


def refuses(op: str, /, *inputs: Array, says: str, **attrs: Any) -> Refusal:
    """A case that must be refused with a message that contains ``says``."""
    return Refusal(case(op, *inputs, **attrs), says)


def _generator(*key: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def _floats(dtype: str) -> Callable[..., Array]:
    def make(*shape: int, low: float | None = None, high: float = 1.0, seed: int = 0) -> Array:
        """Normal numbers, or uniform ones from ``low`` to ``high``."""
        generator = _generator(shape, seed)
        if low is None:
            return generator.standard_normal(shape).astype(dtype)
        return generator.uniform(low, high, shape).astype(dtype)

    return make


def _integers(dtype: str) -> Callable[..., Array]:
    def make(*shape: int, low: int | None = None, high: int = 9, seed: int = 0) -> Array:
        """Integers from ``low`` (-9, or 0 for unsigned types) up to ``high``."""
        low = (0 if dtype.startswith("u") else -9) if low is None else low
        return _generator(shape, seed).integers(low, high + 1, shape).astype(dtype)

    return make


f16, f32, f64 = _floats("float16"), _floats("float32"), _floats("float64")
i8, i32, i64, u8 = map(_integers, ("int8", "int32", "int64", "uint8"))


def ints(*shape: int, low: int = 0, high: int = 9, seed: int = 0) -> Array:
    """Integers as float32, the type MXNet's indices have."""
    return i64(*shape, low=low, high=high, seed=seed).astype("float32")


def flags(*shape: int, seed: int = 0) -> Array:
    """Booleans."""
    return _generator(shape, seed).integers(0, 2, shape).astype(bool)


def of(values: Any, dtype: str = "float32") -> Array:
    """An array of the given numbers."""
    return np.array(values, dtype)


def operator_test(cases: Sequence[Case | Refusal]) -> Callable[..., None]:
    """The test function of a table."""

    @pytest.mark.parametrize("case", cases, ids=str)
    def test(case: Case | Refusal) -> None:
        if isinstance(case, Refusal):
            check_refusal(case)
        else:
            check(case)

    return test


def check_refusal(refusal: Refusal) -> None:
    """Assert that the operator is refused, for the reason given."""
    case = refusal.case
    with pytest.raises(SerdeError) as caught:
        graph = _graph(_symbol_json(case), case, "static")
        lower_to(graph, OPSETS[-1])
    assert refusal.says in str(caught.value)


def check(case: Case) -> None:
    """Assert that serde's conversions compute what MXNet does."""
    skip_inexact(case)
    expected = case.oracle(case)
    text = _symbol_json(case, len(expected))
    gaps, refusals = 0, 0
    lowered = [opset for opset in OPSETS if opset >= case.since]
    for turn, naming in enumerate(_namings(case)):
        try:
            ir = _graph(text, case, naming)
        except Unconvertible as error:
            if naming == "static" or not case.fixed:
                raise
            assert case.fixed in str(error)
            refusals += 1
            continue
        if naming == "static" and case.printed:
            assert str(ir).strip() == case.printed.strip()
        _check_types(ir, expected)
        for opset in OPSETS:
            if opset < case.since:
                with pytest.raises(Unconvertible):
                    lower_to(ir, opset)
                continue
            written = from_ir(ir, opset)
            both = opset == lowered[turn % len(lowered)]  # elsewhere as users run it only
            for runtime, got in _runs(written, case, LEVELS if both else (OPTIMIZED,)):
                gaps += runtime == REFERENCE
                _compare(case, got, expected, f"{runtime}, {naming}, opset {opset}\n{written}")
    assert bool(case.gap) == bool(gaps), f"ONNX Runtime has a kernel now: {case.gap}"
    assert bool(case.fixed) == bool(refusals), f"converts with named sizes: {case.fixed}"


def convert_and_run(case: Case, outputs: int, opset: int) -> dict[str, list[Array]]:
    """What serde's conversion computes in ONNX Runtime, with and without its optimizers."""
    model, feeds = write(case, outputs, opset)
    return {level: run_at(level, model, feeds) for level in LEVELS}


def write(
    case: Case, outputs: int, opset: int, **options: Any
) -> tuple[ModelProto, dict[str, Array]]:
    """The model of a case with sizes that are numbers, and its inputs."""
    graph = from_ir(_graph(_symbol_json(case, outputs), case, "static"), opset, **options)
    return to_proto(graph), _feeds(graph, case)


def _symbol_json(case: Case, outputs: int = 1) -> str:
    if case.network is not None:
        mx = live_mxnet()
        heads = case.network(mx, *(mx.sym.var(f"x{i}") for i in range(len(case.inputs))))
        text = mx.sym.Group(heads).tojson() if isinstance(heads, list) else heads.tojson()
        return text.replace(f'["int", {MXNET_VERSION}]', f'["int", {case.release}]')  # type: ignore
    names = [f"x{i}" for i in range(len(case.inputs))]
    node = {"op": case.op, "name": "op", "inputs": [[i, 0, 0] for i in range(len(names))]}
    nodes = [{"op": "null", "name": n, "inputs": []} for n in names]
    return json.dumps(
        {
            "nodes": [
                *nodes,
                {**node, "attr" if case.release < ATTRS_SINCE else "attrs": dict(case.attrs)},
            ],
            "arg_nodes": list(range(len(names))),
            "heads": [[len(names), i, 0] for i in range(outputs)],
            "attrs": {"mxnet_version": ["int", case.release], **_shape_flag(case)},
        }
    )


def _shape_flag(case: Case) -> dict[str, Any]:
    """How the file of another release says that it has NumPy's shapes."""
    is_told = case.np_shape and case.release != MXNET_VERSION
    return {"is_np_shape": ["int", 1]} if is_told else {}


def _graph(text: str, case: Case, naming: str) -> Graph:
    """The IR of a symbol, with the parameters as constants and sizes named as asked."""
    graph = decode_symbol(parse_symbol(text), None, "case")
    values = {v.name: v for v in graph.inputs}
    shapes = _name_sizes(case, naming)
    bound, inputs = {}, {}
    for i, array in enumerate(case.inputs):
        value = values.get(f"x{i}")
        if value is not None and i in case.params:
            bound[value] = Value(value.name, None, None, Tensor.of(array))
            bound[value].dtype, bound[value].shape = bound[value].tensor.dtype, array.shape
        elif value is not None:
            inputs[value.name] = (shapes[i], array.dtype)
    graph = replace(
        replace_values(graph, bound), inputs=tuple(v for v in graph.inputs if v not in bound)
    )
    return tidy(to_ir(with_inputs(graph, inputs), kernels=case.kernels))


def _namings(case: Case) -> list[str]:
    """The ways to name sizes that differ from one another."""
    shapes = {naming: tuple(_name_sizes(case, naming)) for naming in NAMINGS}
    return [n for i, n in enumerate(NAMINGS) if shapes[n] not in [shapes[m] for m in NAMINGS[:i]]]


def _name_sizes(case: Case, naming: str) -> list[Shape]:
    """The shapes of the inputs; sizes above 1 are named, alike where they are equal."""
    if naming == "static":
        return [x.shape for x in case.inputs]
    if naming == "batch":
        sizes = [x.shape[0] for x in case.inputs if x.ndim and x.shape[0] > 1]
        batch = sizes[0] if sizes else None
        return [
            ("N", *x.shape[1:]) if x.ndim and x.shape[0] == batch else x.shape for x in case.inputs
        ]
    names: list[Shape] = []
    for x in case.inputs:
        dims: list[Any] = []
        for axis, size in enumerate(x.shape):
            alike = (f"d{size}", f"d{size}_{axis}")
            dims.append(size if size <= 1 else alike[alike[0] in dims])
        names.append(tuple(dims))
    return names


def _check_types(ir: Graph, expected: Sequence[Array]) -> None:
    assert len(ir.outputs) == len(expected)
    for value, array in zip(ir.outputs, expected, strict=True):
        assert value.dtype is not None and value.dtype.numpy == array.dtype, f"{value}\n{ir}"
        assert value.shape is not None and len(value.shape) == array.ndim, f"{array.shape}\n{ir}"
        for dim, size in zip(value.shape, array.shape, strict=True):
            assert not isinstance(dim, int) or dim == size, f"{array.shape}\n{ir}"


def _feeds(graph: Graph, case: Case) -> dict[str, Array]:
    return {v.name: case.inputs[int(v.name[1:])] for v in graph.inputs}


def _runs(
    graph: Graph, case: Case, levels: Iterable[str]
) -> Iterator[tuple[str, list[Array]]]:  # fmt: skip
    """What the written graph computes, by runtime."""
    model, feeds = to_proto(graph), _feeds(graph, case)
    data = model.SerializeToString()
    for level in levels:
        try:
            yield level, run_at(level, data, feeds)
        except Exception as error:  # its exceptions have no common base but this
            lacking = "NOT_IMPLEMENTED" in str(error) or "does not support" in str(error)
            if not lacking or not case.gap:
                raise AssertionError(f"{level}: {str(error)[:500]}\n{graph}") from error
            from onnx.reference import ReferenceEvaluator

            yield REFERENCE, list(ReferenceEvaluator(model).run(None, feeds))


def _compare(case: Case, got: Sequence[Array], expected: Sequence[Array], where: str) -> None:
    for at, (y, reference) in enumerate(zip(got, expected, strict=True)):
        place = f"output {at}, {where}"
        assert y.shape == reference.shape, f"shape {y.shape}, MXNet's {reference.shape}; {place}"
        assert y.dtype == reference.dtype, f"type {y.dtype}, MXNet's {reference.dtype}; {place}"
        assert _error(y, reference) <= (case.tolerance or _tolerance(reference)), (
            f"{y}\nMXNet:\n{reference}\n{place}"
        )


def _tolerance(expected: Array) -> float:
    if expected.dtype.kind != "f":
        return 0.0
    return TOLERANCE.get(expected.dtype.name, DEFAULT_TOLERANCE)


def _error(y: Array, expected: Array) -> float:
    """The largest difference in terms of the largest number; NaN and infinities must agree."""
    if expected.dtype.kind != "f":
        return float(not np.array_equal(y, expected))
    y, expected = y.astype("float64"), expected.astype("float64")
    finite = np.isfinite(expected)
    if not np.array_equal(y[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    if not np.isfinite(y[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    scale = np.abs(expected[finite]).max() or 1.0
    return float(np.abs(y[finite] - expected[finite]).max() / scale)
