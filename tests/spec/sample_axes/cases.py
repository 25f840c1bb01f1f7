"""Axes along which operators work index by index: ONNX Runtime's results are permuted alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import onnx

from serde.errors import SerdeError
from serde.formats.onnx.reader import decode
from serde.ir.graph import DType, Node, Tensor, Value
from serde.legalize.convert import raise_to_ir
from serde.spec.sample_axes import ANY, SHARED, SampleAxis, find_sample_axes
from serde.spec.sample_axes.table import RULES
from testing.node_cases import RANDOM, Case, all_cases
from testing.onnx_live import PLAIN, model_of, session_of

ML = "ai.onnx.ml"
# No case, or none that ONNX Runtime runs, has two indices along an axis.
UNTESTED = frozenset(
    "ConcatFromSequence Multinomial OptionalGetElement OptionalHasElement Optional SequenceAt "
    "SequenceConstruct SequenceErase SequenceInsert SequenceLength SplitToSequence Bernoulli "
    "CastLike RandomNormalLike RandomUniformLike Shape Size SwiGLU".split()
)


def node_of(case: Case) -> Node | None:
    """The only node of a case, whose operands are constants."""
    try:
        (node,) = raise_to_ir(decode(case.model)).nodes
    except (SerdeError, ValueError):  # two nodes
        return None
    arrays, expected = case.data[0]
    names = {v.name: a for v, a in zip(case.model.graph.input, arrays, strict=False)}
    own = case.model.graph.node[0]
    operands = [v and v.name for v in node.inputs]
    if any(n is not None and not isinstance(names.get(n), np.ndarray) for n in operands):
        return None
    if node.op != own.op_type or len(node.outputs) != len(expected):
        return None
    if not node.inputs or len(case.model.graph.input) != len(operands) - operands.count(None):
        return None
    inputs = tuple(None if n is None else constant(n, names[n]) for n in operands)
    outputs = tuple(
        Value(v.name, v.dtype, getattr(a, "shape", None))
        for v, a in zip(node.outputs, expected, strict=True)
    )
    return Node(node.op, inputs, outputs, node.attrs, node.domain)


def constant(name: str, array: np.ndarray) -> Value:
    return Value(name, DType.of(array.dtype), array.shape, Tensor.of(array))


# Models of opset 21 for what node tests have with one index alone, or ONNX Runtime does not run.
MORE = {
    "Cast": "(float[2,3] x) => (int32[2,3] y) { y = Cast<to=6>(x) }",
    "Celu": "(float[2,3] x) => (float[2,3] y) { y = Celu(x) }",
    "Col2Im": "(float[2,4,9] x, int64[2] s = {4,4}, int64[2] k = {2,2}) => (float[2,1,4,4] y) { y = Col2Im(x, s, k) }",
    "Compress": "(float[2,3] x, bool[3] c = {1,0,1}) => (float[2,2] y) { y = Compress<axis=1>(x, c) }",
    "Conv": "(float[2,3,5] x, float[4,3,2] w, float[4] b) => (float[2,4,4] y) { y = Conv(x, w, b) }",
    "ConvInteger": "(uint8[2,3,5,5] x, uint8[4,3,2,2] w, uint8 z) => (int32[2,4,4,4] y) { y = ConvInteger(x, w, z) }",
    "DeformConv": "(float[2,3,4,4] x, float[2,3,2,2] w, float[2,8,3,3] o) => (float[2,2,3,3] y) { y = DeformConv<kernel_shape=[2,2]>(x, w, o) }",
    "DepthToSpace": "(float[2,4,3,3] x) => (float[2,1,6,6] y) { y = DepthToSpace<blocksize=2>(x) }",
    "DequantizeLinear": "(uint8[2,3] x, float[3] s, uint8[3] z) => (float[2,3] y) { y = DequantizeLinear<axis=1>(x, s, z) }",
    "Einsum": '(float[2,3,4] x, float[2,4,5] w) => (float[2,3,5] y) { y = Einsum<equation="bij,bjk->bik">(x, w) }',
    "GRU": "(float[4,3,2] x, float[1,15,2] w, float[1,15,5] r, float[1,30] b, int32[3] l = {1,2,4}, float[1,3,5] h) => (float[4,1,3,5] y, float[1,3,5] z) { y, z = GRU<hidden_size=5>(x, w, r, b, l, h) }",
    "GridSample": "(float[2,3,4,4] x, float[2,5,5,2] g) => (float[2,3,5,5] y) { y = GridSample(x, g) }",
    "LSTM": "(float[4,3,2] x, float[1,20,2] w, float[1,20,5] r, float[1,40] b, int32[3] l = {1,2,4}, float[1,3,5] h, float[1,3,5] c) => (float[4,1,3,5] y, float[1,3,5] z, float[1,3,5] u) { y, z, u = LSTM<hidden_size=5>(x, w, r, b, l, h, c) }",
    "QLinearConv": "(uint8[2,1,4,4] x, float s = {0.1}, uint8 z = {3}, uint8[2,1,2,2] w, float t = {0.2}, uint8 u = {4}, float v = {0.5}, uint8 q = {5}) => (uint8[2,2,3,3] y) { y = QLinearConv(x, s, z, w, t, u, v, q) }",
    "QuantizeLinear": "(float[2,3] x, float[3] s = {0.1,0.2,0.3}, uint8[3] z = {3,4,5}) => (uint8[2,3] y) { y = QuantizeLinear<axis=1>(x, s, z) }",
    "RNN": "(float[4,3,2] x, float[1,5,2] w, float[1,5,5] r, float[1,10] b, int32[3] l = {1,2,4}, float[1,3,5] h) => (float[4,1,3,5] y, float[1,3,5] z) { y, z = RNN<hidden_size=5>(x, w, r, b, l, h) }",
    "Resize": "(float[2,3,4,4] x, int64[4] s = {2,3,6,8}) => (float[2,3,6,8] y) { y = Resize<mode=\"linear\">(x, , , s) }",
    "ReverseSequence": "(float[4,3] x, int64[3] l = {1,2,4}) => (float[4,3] y) { y = ReverseSequence(x, l) }",
    "RoiAlign": "(float[2,3,8,8] x, float[3,4] r = {0,0,4,4,1,1,5,7,2,0,7,7}, int64[3] i = {0,1,1}) => (float[3,3,2,2] y) { y = RoiAlign<output_height=2, output_width=2>(x, r, i) }",
    "STFT": "(float[2,16,1] x, int64 k = {4}, float[8] w) => (float[2,3,5,2] y) { y = STFT(x, k, w) }",
    "Tile": "(float[2,3] x, int64[2] r = {1,2}) => (float[2,6] y) { y = Tile(x, r) }",
}  # fmt: skip


def case_of(text: str, name: str) -> Case:
    """A case of a model's text: numbers stand behind the inputs that have some."""
    numbers: dict[str, list[float]] = {}

    def take(match: re.Match[str]) -> str:
        numbers[match[1]] = [float(n) for n in match[2].split(",")]
        return f" {match[1]}"

    text = re.sub(r" (\w+) = \{([^}]*)\}(?=[,)])", take, text)
    model = model_of(f"g {text}", 21, 10)
    for domain in {n.domain for n in model.graph.node} - {""}:
        model.opset_import.append(onnx.helper.make_opsetid(domain, 3 if domain == ML else 1))
    generator = np.random.default_rng(0)
    arrays = []
    for value in model.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        random = (
            generator.uniform(-1, 1, shape)
            if kind == np.float32
            else generator.integers(1, 9, shape)
        )
        own = numbers.get(value.name)
        arrays.append(np.asarray(random if own is None else own, kind).reshape(shape))
    outputs = [
        np.zeros([d.dim_value for d in v.type.tensor_type.shape.dim]) for v in model.graph.output
    ]
    return Case(name, model, [(arrays, outputs)], 0, 0)


@cache
def cases_by_operator() -> dict[str, list[Case]]:
    cases = {op: [case_of(text, op)] for op, text in MORE.items()}
    for case in all_cases():
        if len(case.model.graph.node) == 1 and not any(word in case.name for word in RANDOM):
            own = case.model.graph.node[0]
            name = f"{own.domain}:{own.op_type}" if own.domain else own.op_type
            cases.setdefault(name, []).append(case)
    return cases


def permute(node: Node, axis: SampleAxis) -> tuple[dict[str, np.ndarray], np.ndarray] | None:
    """The operands with other indices along an axis, and those; None where there are few."""
    axes = [(v, a) for v, a in zip(node.inputs, axis.inputs, strict=True) if v is not None]
    sizes = {v.shape[a] for v, a in axes if a is not None and a != ANY}
    size = max(sizes, default=0)
    if size < 2 or sizes - {size} - ({1} if axis.broadcasts else set()):
        return None
    order = np.roll(np.random.default_rng(0).permutation(size), 1)
    feeds = {}
    for value, a in axes:
        is_along = a is not None and a != ANY and value.shape[a] == size
        feeds[value.name] = np.take(value.array(), order, a) if is_along else value.array()
    return feeds, order


def check_case(case: Case) -> Iterator[SampleAxis]:
    """The axes of a case that were compared."""
    node = node_of(case)
    if node is not None:
        yield from check_axes(case, node)


def check_axes(case: Case, node: Node) -> Iterator[SampleAxis]:
    """The axes of the node of a case that were compared."""
    plain = {v.name: v.array() for v in node.inputs if v is not None}
    expected: Any = None
    for axis in find_sample_axes(node):
        other = permute(node, axis)
        if other is None:
            continue
        try:
            if expected is None:
                session = session_of(case.model, PLAIN)
                expected = session.run(None, plain)
            actual = session.run(None, other[0])
        except RuntimeError:  # ONNX Runtime does not take the type
            return
        except Exception as error:  # nor has it a kernel
            assert type(error).__module__.startswith("onnxruntime"), error
            return
        for at, before, after in zip(axis.outputs, expected, actual, strict=True):
            if at is None or isinstance(before, list):
                continue
            wanted = before if at == SHARED else np.take(before, other[1], at)
            assert_same(after, wanted, f"{case.name} {axis}")
        yield axis


def assert_same(actual: np.ndarray, expected: np.ndarray, message: str) -> None:
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(actual, expected, 1e-4, 1e-5, err_msg=message)
    else:
        np.testing.assert_array_equal(actual, expected, message)


def operators_of(module: ModuleType) -> list[str]:
    """The operators whose rules are written in a module, and that there are cases of."""
    rules = (op for op, rule in RULES.items() if rule.__module__ == module.__name__)
    return sorted(cases_by_operator().keys() & {*rules})


def check_operator(op: str) -> None:
    """Assert that results are permuted as operands are, along all axes of all cases."""
    count = sum(1 for case in cases_by_operator()[op] for _ in check_case(case))
    assert count or op in UNTESTED
