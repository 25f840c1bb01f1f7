"""Measure which operators a consumer of ONNX gets right, and with which element types.

ONNX's own node tests of one operator, at the consumer's opset, are run with every element type the
standard allows for each type variable: by the consumer as they are, and in ONNX Runtime, or
onnx.reference where that has no such kernel. Tests that are not right as they are do not count:
their forms are for rules. A type that is right in a test, and wrong in none, is listed.
"""

from __future__ import annotations

import tempfile
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from serde.errors import SerdeError
from serde.formats.onnx.consumers.support_table import split_table
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType
from serde.legalize.convert import lower_to, raise_to_ir
from serde.spec import schema
from testing.live_worker import LiveError
from testing.node_cases import Case, all_cases, difference, freeze, results
from testing.onnx_live import run_model

TYPES = frozenset(
    {DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.BOOL}
    | {DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
CASES = 3  # of each operator, spread over its tests
HALF = 4e-3  # relative tolerance of float16
TOGETHER = {"BatchNormalization", "Pow"}  # their operands are cast to one type
EVERY = {"Cast": "what is out of range is undefined, and all there is in the tests"}
# Consumers round a sum of halves after every step, and ONNX Runtime once: they are computed wider.
SUMS = frozenset(
    "AveragePool Conv ConvTranspose CumSum Einsum Gemm GlobalAveragePool InstanceNormalization "
    "LayerNormalization LogSoftmax LpPool MatMul ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
    "ReduceMean ReduceProd ReduceSum ReduceSumSquare Softmax".split()
)
LETTERS = {d.numpy.newbyteorder("=").str[1:]: d for d in TYPES}
HEADER = '''\
"""Operators {title} gets right, and with which element types.

Made by `python -m conformance.{maker}`, with {package} {version}, at opset {opset}.
A paragraph has the types for each type variable, as NumPy spells them, and the operators of these.
"""

from __future__ import annotations

from ..support_table import parse_table

MEASURED = """
{table}
"""

SUPPORTED = parse_table(MEASURED)
'''


@dataclass(frozen=True)
class Consumer:
    """What is measured: ``run`` computes a model in a file, or raises LiveError.

    ``page`` is written, by the command ``conformance.{maker}``.
    """

    title: str
    package: str
    opset: int
    run: Callable[[str, Mapping[str, Any]], Sequence[Any]]
    version: Callable[[], str]
    page: Path
    maker: str


@dataclass(frozen=True)
class Tried:
    """A test of one operator at the opset, with its operands."""

    case: Case
    op: str


def tests(opset: int) -> Iterator[Tried]:
    """Node tests that are one node of the default domain at the opset."""
    by_op = defaultdict(list)
    for case in (*all_cases(), *make_missing_cases()):
        case = freeze(case) or case
        if len(case.ops) != 1 or len(case.data) != 1 or case.is_random:
            continue
        try:
            model = to_proto(lower_to(raise_to_ir(decode(case.model)), opset))
        except SerdeError:
            continue
        nodes = list(model.graph.node)
        held = (*case.data[0][0], *case.data[0][1])
        arrays = all(isinstance(a, np.ndarray) and a.dtype != object and a.size for a in held)
        if len(nodes) == 1 and arrays and not any(a.HasField("g") for a in nodes[0].attribute):
            nodes[0].name = "node"
            new_case = Case(case.name, model, case.data, 1e-3, 1e-6)
            new_case = without_extras(new_case, opset) or new_case
            by_op[nodes[0].op_type].append(new_case)
    for op, cases in by_op.items():
        step = max(1, len(cases) // CASES)
        yield from (Tried(c, op) for c in cases[::step][:CASES])


def make_missing_cases() -> Iterator[Case]:
    """Tests of operators that ONNX has no node tests of, as ONNX Runtime computes them."""
    draws = np.random.default_rng(0)
    images = draws.standard_normal((2, 3, 13, 11)).astype(np.float32)
    regions = draw_regions(draws)
    for shape, scale in (((2, 3), 1.0), ((3, 3), 0.73), ((1, 1), 0.5)):
        attrs = {"pooled_shape": shape, "spatial_scale": scale}
        yield make_case("MaxRoiPool", (images, regions), **attrs)
    for p in (1, 2, 3):
        yield make_case("GlobalLpPool", (images,), p=p)


def draw_regions(draws: np.random.Generator) -> np.ndarray[Any, Any]:
    """Regions of two images, as ``MaxRoiPool`` takes them: shape (6, 5), float32."""
    starts = draws.uniform(0, 9, (6, 2))
    ends = starts + draws.uniform(-1, 8, (6, 2))
    return np.hstack([draws.integers(0, 2, (6, 1)), starts, ends]).astype(np.float32)


def make_case(op: str, feeds: Sequence[np.ndarray[Any, Any]], **attrs: Any) -> Case:
    """A test of one operator of one output, at the opset of the node tests."""
    names = [f"x{i}" for i in range(len(feeds))]
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, feeds, strict=True)
    ]
    node = helper.make_node(op, names, ["y"], **attrs)
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([node], op, inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    expected = run_model(model, dict(zip(names, feeds, strict=True)))
    return Case(f"{op} {attrs}", model, [(feeds, expected)], 1e-3, 1e-6)


def without_extras(case: Case, opset: int) -> Case | None:
    """The test with the first output only, if it has others that may be left out."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node = model.graph.node[0]
    others = schema.operator(node.op_type, opset).outputs[1:]
    if node.output[:1] != [v.name for v in model.graph.output[:1]]:
        return None
    if len(node.output) < 2 or not others or not all(f.optional for f in others):
        return None
    del node.output[1:]
    del model.graph.output[1:]
    ((feeds, expected),) = case.data
    return Case(case.name, model, [(feeds, expected[:1])], case.rtol, case.atol)


def retype(
    tried: Tried, tie: str, dtype: DType, opset: int
) -> tuple[onnx.ModelProto, dict[str, Any]] | None:
    """The test with another type for a type variable; None where the test has no such operand."""
    model = onnx.ModelProto()
    model.CopyFrom(tried.case.model)
    graph, operator = model.graph, schema.operator(tried.op, opset)
    feeds = dict(zip((i.name for i in graph.input), tried.case.data[0][0], strict=True))
    ties = {tie} if tried.op not in TOGETHER else {f.tie for f in operator.inputs}
    tied = {n for i, n in enumerate(graph.node[0].input) if n and operator.input(i).tie in ties}
    code = schema.ELEMENT_CODES[dtype]
    for entry in graph.input:
        if entry.name in tied:
            entry.type.tensor_type.elem_type = code
            feeds[entry.name] = as_type(feeds[entry.name], dtype)
    for held in graph.initializer:
        if held.name in tied:
            array = as_type(numpy_helper.to_array(held), dtype)
            held.CopyFrom(numpy_helper.from_array(array, held.name))
    for i, entry in enumerate(graph.output):
        if operator.outputs[min(i, len(operator.outputs) - 1)].tie in ties:
            entry.type.tensor_type.elem_type = code
    return (model, feeds) if tied or not tie else None


def as_type(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Numbers in another type: none that it has not."""
    if dtype.kind in "iu" and array.dtype.kind == "f":
        array = np.round(array * 3)
    if dtype.kind == "u":
        array = np.abs(array.astype(np.float64))
    return array.astype(dtype.numpy)


def outcome(
    consumer: Consumer, tried: Tried, tie: str = "", dtype: DType = DType.FLOAT32
) -> str | None:
    """What becomes of a test, or of it in a type; None where nobody tells what would be right."""
    pair = retype(tried, tie, dtype, consumer.opset)
    if pair is None:
        return None
    model, feeds = pair
    reason = None
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, f"{folder}/m.onnx")
        try:
            got = consumer.run(f"{folder}/m.onnx", feeds)
        except LiveError as error:
            reason = f"refused: {str(error).strip().splitlines()[-1][:100]}"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _, truth in results(model, list(feeds.values())):
            if isinstance(truth, Exception):
                continue
            if reason is not None and reason.startswith("refused"):
                break
            half = any(y.dtype == np.float16 for y in truth)
            rtol, atol = (HALF, 2e-3) if half else (tried.case.rtol, 1e-6)
            how = difference(Case(tried.case.name, model, (), rtol, atol), truth, got)
            if how is None:
                return "right"
            reason = reason or f"wrong: {how}"
        else:
            return reason
    return reason


def measure_operator(consumer: Consumer, op: str, tries: list[Tried]) -> str | None:
    """The element types of an operator, None where it is right in no test."""
    operator, parts, good = schema.operator(op, consumer.opset), [], []
    if op in EVERY:
        return ""
    for tried in tries:
        if (reason := outcome(consumer, tried)) == "right":
            good.append(tried)
        else:
            print(op, tried.case.name, reason, sep="; ", flush=True)
    ties = {operator.input(i).tie: i for i in reversed(range(len(operator.inputs)))}
    for tie, index in ties.items():
        right = []
        for letter, dtype in sorted(LETTERS.items()):
            if f"tensor({_format_onnx_type(dtype)})" not in operator.raw.inputs[index].types:
                continue
            status = [s for t in good if (s := outcome(consumer, t, tie, dtype)) is not None]
            lossy = dtype is DType.FLOAT16 and op in SUMS
            if "right" in status and not lossy and not any(s.startswith("wrong") for s in status):
                right.append(letter)
            if any(s != "right" for s in status):
                print(op, tie, dtype.value, *(s for s in status if s != "right"), sep="; ")
        parts += [f"{tie}={','.join(right)}"] if right else []
    return " ".join(sorted(parts)) if good else None


def _format_onnx_type(dtype: DType) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype.value, dtype.value)


def join_table(operators: Mapping[str, str]) -> str:
    """The text of a table, of the element types of each operator."""
    groups: dict[str, list[str]] = defaultdict(list)
    for op, types in sorted(operators.items()):
        groups[types].append(op)
    paragraphs = (f"{types}: {' '.join(ops)}" for types, ops in sorted(groups.items()))
    return "\n".join(textwrap.fill(p, 100, subsequent_indent="  ") for p in paragraphs)


def write_table(consumer: Consumer, measured_before: str, arguments: Sequence[str]) -> None:
    """Measure the operators named, all if there are none, and write the table."""
    groups: dict[str, list[Tried]] = defaultdict(list)
    for tried in tests(consumer.opset):
        if not arguments or tried.op in arguments:
            groups[tried.op].append(tried)
    table = split_table(measured_before) if arguments else {}
    for op, tries in sorted(groups.items()):
        types = measure_operator(consumer, op, tries)
        print(f"{op}: {'nothing' if types is None else types}", flush=True)
        table.pop(op, None)
        table |= {} if types is None else {op: types}
    text = HEADER.format(
        title=consumer.title, maker=consumer.maker, package=consumer.package,
        version=consumer.version(), opset=consumer.opset,
        table=join_table(table),
    )  # fmt: skip
    consumer.page.write_text(text, encoding="utf-8")
