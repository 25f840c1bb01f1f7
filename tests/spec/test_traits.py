"""What is said of operators holds for onnx's schemas, and for what onnx computes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from serde.spec import schema, traits
from serde.spec.traits import (
    ARRANGES,
    AXES,
    AXES_OPERANDS,
    AXIS,
    BITWISE,
    BROADCASTS,
    CHOOSES,
    COMPARISONS,
    COUNTS,
    DATA_DEPENDENT,
    ELEMENTWISE,
    EXTREMES,
    INDEXES,
    KEEPS_DIGITS,
    MOVES,
    NON_NEGATIVE,
    PREDICATES,
    REDUCES,
    RESHAPES,
    ROUNDS,
    SEQUENCES,
    WINDOWS,
    WRAPS,
    ZERO_FILLS,
)
from testing.node_cases import Case, all_cases

SCHEMAS = {s.name: s for s in sorted(
    (s for s in onnx.defs.get_all_schemas_with_history() if not s.domain),
    key=lambda s: s.since_version)}  # fmt: skip
SETS = {n: t for n, t in vars(traits).items() if n.isupper()}
TYPES = {"tensor(float)": np.float32, "tensor(bool)": np.bool_, "tensor(int32)": np.int32,
         "tensor(uint32)": np.uint32, "tensor(int64)": np.int64}  # fmt: skip
ATTRS: dict[str, dict[str, Any]] = {
    "Cast": {"to": onnx.TensorProto.INT32}, "BitShift": {"direction": "LEFT"},
    "Clip": {}, "Mod": {},
}  # fmt: skip
MORE = {"Clip": [np.float32(-0.5), np.float32(0.5)]}  # operands beside the data
DRAWN = frozenset({"Bernoulli", "RandomNormalLike", "RandomUniformLike", "Dropout"})


def draw(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype is np.float32:
        return rng.uniform(-0.9, 0.9, shape).astype(np.float32)
    return rng.integers(0, 2 if dtype is np.bool_ else 6, shape).astype(dtype)


def compute(op: str, *arrays: Any, **attrs: Any) -> list[Any]:
    """What onnx's reference computes, at the newest opset."""
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)]
    given = [n for n in names if n]
    outputs = [f"y{i}" for i in range(max(SCHEMAS[op].min_output, 1))]
    ends = [helper.make_tensor_value_info(n, 1, None) for n in (*given, *outputs)]
    node = helper.make_node(op, names, outputs, **{**ATTRS.get(op, {}), **attrs})
    graph = helper.make_graph([node], "g", ends[: len(given)], ends[len(given) :])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)])
    feeds = {n: a for n, a in zip(names, arrays, strict=True) if n}
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model).run(None, feeds))


def type_of(op: str, at: int = 0) -> Any:
    types = SCHEMAS[op].inputs[min(at, len(SCHEMAS[op].inputs) - 1)].types
    return next((dtype for name, dtype in TYPES.items() if name in types), None)


@cache
def cases() -> dict[str, list[Case]]:
    """Node tests of tensors, by operator."""
    found: dict[str, list[Case]] = {}
    for case in all_cases():
        if len(case.model.graph.node) == 1:
            found.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return found


@pytest.mark.parametrize("name", SETS)
def test_operators_exist(name: str) -> None:
    assert not [op for op in SETS[name] if schema.first_version(op) is None]


def test_broadcasting_is_as_in_the_schemas() -> None:
    assert {n for n, s in SCHEMAS.items() if "multidirectional" in s.doc} == BROADCASTS


def test_names_of_axes_are_as_in_the_schemas() -> None:
    kinds = {n: {a: k.type for a, k in s.attributes.items()} for n, s in SCHEMAS.items()}
    integer = onnx.defs.OpSchema.AttrType.INT
    of_others = {"ConcatFromSequence", "OneHot"}  # axes of elements, and of the result
    assert {n for n, k in kinds.items() if k.get("axis") is integer} - of_others == AXIS
    assert {n for n, k in kinds.items() if "axes" in k} == AXES
    operands = {n: [i.name for i in s.inputs] for n, s in SCHEMAS.items()}
    assert {n: names.index("axes") for n, names in operands.items() if "axes" in names} == (
        AXES_OPERANDS
    )


def test_windows_are_as_in_the_schemas() -> None:
    assert {n for n, s in SCHEMAS.items() if "auto_pad" in s.attributes} == WINDOWS


def test_reductions_are_as_in_the_schemas() -> None:
    assert {op for op, at in AXES_OPERANDS.items() if at == 1} - REDUCES == {"Squeeze", "Unsqueeze"}
    assert all({"keepdims", "noop_with_empty_axes"} <= SCHEMAS[op].attributes.keys()
               for op in REDUCES)  # fmt: skip
    assert {"ReduceMax", "ReduceMin"} == EXTREMES


def has(op: str, types: str) -> bool:
    """Whether an operand or a result is always of types that begin so."""
    formals = [*SCHEMAS[op].inputs, *SCHEMAS[op].outputs]
    return any(f.types and all(t.startswith(types) for t in f.types) for f in formals)


def test_sequences_are_as_in_the_schemas() -> None:
    assert {n for n in SCHEMAS if has(n, "seq(")} == SEQUENCES


def test_counts_are_as_in_the_schemas() -> None:
    results = {n: [set(o.types) for o in s.outputs] for n, s in SCHEMAS.items()}
    assert {n for n, types in results.items() if {"tensor(int64)"} in types} == COUNTS


def test_indexed_operands_are_as_in_the_schemas() -> None:
    operands = {n: [i.name for i in s.inputs] for n, s in SCHEMAS.items() if not s.deprecated}
    assert {n for n, names in operands.items() if names[1:2] == ["indices"]} == INDEXES


def test_bitwise_operators_broadcast() -> None:
    assert {n for n in BROADCASTS if n.startswith("Bitwise")} == BITWISE


@pytest.mark.parametrize("op", sorted(DATA_DEPENDENT))
def test_sizes_depend_on_data(op: str) -> None:
    """Two node tests, or inputs, of the same shapes have results of different ones."""
    arrays = {
        "Compress": ([1, 2, 3], [True, False, True]), "NonZero": ([1, 0, 2],), "Range": (0, 5, 1),
        "Unique": ([1, 1, 2],),
    }  # fmt: skip
    others = {
        "Compress": ([1, 2, 3], [True, True, True]), "NonZero": ([1, 1, 2],), "Range": (0, 9, 1),
        "Unique": ([1, 3, 2],),
    }  # fmt: skip
    if op == "NonMaxSuppression":
        boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1]]], np.float32)
        scores, most = np.array([[[0.9, 0.8]]], np.float32), np.array([5])
        found = [compute(op, boxes, scores, most, np.array([t], np.float32))[0] for t in (0.1, 1)]
    else:
        found = [compute(op, *map(np.array, each[op]))[0] for each in (arrays, others)]
    assert found[0].shape != found[1].shape


def is_elementwise(op: str) -> bool:
    """Whether elements that change places do so in the result; for operators of one tensor."""
    x = draw((2, 3, 4, 5), type_of(op))
    order = np.random.default_rng(1).permutation(x.size)
    more = MORE.get(op, [])
    y, z = (compute(op, a, *more)[0] for a in (x, x.ravel()[order].reshape(x.shape)))
    return y.shape == x.shape and np.array_equal(y.ravel()[order], z.ravel(), equal_nan=True)


@pytest.mark.parametrize("op", sorted(ELEMENTWISE))
def test_elementwise(op: str) -> None:
    assert is_elementwise(op)
    assert len(SCHEMAS[op].outputs) == 1


def test_no_elementwise_operator_is_missing() -> None:
    def might_be(op: str) -> bool:
        s = SCHEMAS[op]
        required = [a for a in s.attributes.values() if a.required]
        one = s.min_input == 1 and len(s.outputs) == 1 and not required and not s.deprecated
        return one and op not in DRAWN and type_of(op) is not None

    found = set()
    for op in filter(might_be, SCHEMAS):
        try:
            found |= {op} if is_elementwise(op) else set()
        except Exception:
            continue
    assert found - ARRANGES - {"OptionalGetElement"} <= ELEMENTWISE | BROADCASTS
    assert found >= ELEMENTWISE - {"Cast", "Clip"} - {op for op in ELEMENTWISE if not might_be(op)}


@pytest.mark.parametrize("op", sorted(BROADCASTS))
def test_broadcasts(op: str) -> None:
    count = 3 if op == "Where" else 2
    first = (3, 4) if op == "Mean" else (3, 1)  # the reference adds to the first one
    shapes = [first, (1, 4), (4,)][:count]
    arrays = [draw(s, type_of(op, i), i) for i, s in enumerate(shapes)]
    if op in ("Div", "Mod"):
        arrays[1] = np.abs(arrays[1]) + np.float32(1)
    full = [np.broadcast_to(a, (3, 4)).copy() for a in arrays]
    attrs = {"fmod": 1} if op == "Mod" else {}
    y, z = compute(op, *arrays, **attrs)[0], compute(op, *full, **attrs)[0]
    assert y.shape == (3, 4)
    np.testing.assert_array_equal(y, z)
    assert (y.dtype == np.bool_) >= (op in COMPARISONS)


@pytest.mark.parametrize("op", sorted(MOVES.keys() - {"MaxRoiPool"}))  # which has no test of onnx
def test_results_are_elements_of_operands(op: str) -> None:
    seen = 0
    for case in cases()[op]:
        node = case.model.graph.node[0]
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        arrays, (result, *_) = case.data[0]
        is_empty = any(isinstance(a, np.ndarray) and not a.size for a in arrays)
        is_computed = (
            is_empty or attrs.get("reduction", b"none") != b"none" or "training" in case.name
        )
        operands = dict(zip([n for n in node.input if n], arrays, strict=False))
        places = MOVES[op] or range(len(node.input))
        moved = [operands[node.input[i]] for i in places if i < len(node.input) and node.input[i]]
        if is_computed or not all(isinstance(a, np.ndarray) for a in (result, *moved)):
            continue
        zeros = [np.zeros(1, a.dtype) for a in moved[:1] if op in ZERO_FILLS or op == "Pad"]
        known = np.concatenate([np.ravel(a).astype(result.dtype) for a in (*moved, *zeros)])
        is_known = np.isin(result, known)
        assert is_known.all() or np.isnan(result).any(), case.name
        if op in RESHAPES:
            np.testing.assert_array_equal(result.ravel(), moved[0].ravel())
        seen += 1
    assert seen


@pytest.mark.parametrize("op", sorted(CHOOSES - {"MaxRoiPool"}))
def test_what_is_chosen_by_size(op: str) -> None:
    x = draw((1, 2, 4, 4), np.float32)
    more = {"Max": [x[:, ::-1]], "Min": [x[:, ::-1]], "TopK": [np.array([2])]}.get(op, [])
    attrs = {"kernel_shape": [2, 2]} if op == "MaxPool" else {}

    def run(sign: float) -> Any:
        scaled = [a * np.float32(sign) if a.dtype == np.float32 else a for a in (x, *more)]
        return compute(op, *scaled, **attrs)[0]

    np.testing.assert_array_equal(run(4), run(1) * 4)
    assert not np.array_equal(run(-1), -run(1))


def test_arranging_looks_at_no_element() -> None:
    assert not ARRANGES & (CHOOSES | ZERO_FILLS)
    assert ARRANGES >= RESHAPES and all(MOVES[op] == (0,) for op in ARRANGES | ZERO_FILLS)


@pytest.mark.parametrize("op", sorted(NON_NEGATIVE))
def test_results_that_are_not_negative(op: str) -> None:
    y = compute(op, draw((4, 6), np.float32) * 3)[0]
    assert not (y < 0).any() and np.isfinite(y).any()


def test_no_function_of_one_tensor_without_negative_results_is_missing() -> None:
    x = draw((4, 6), np.float32) * 3
    found = {op for op in ELEMENTWISE - {"Cast", "Clip"} if type_of(op) is np.float32 and compute(op, x)[0].dtype == np.float32
             and not (compute(op, x)[0] < 0).any()}  # fmt: skip
    bounded = {"Acos", "Cosh", "Acosh", "ThresholdedRelu"}  # not of wider use
    assert found - bounded <= NON_NEGATIVE


def test_predicates_have_booleans_for_results() -> None:
    booleans = {n for n in ELEMENTWISE | BROADCASTS
                if SCHEMAS[n].outputs[0].types == {"tensor(bool)"}}  # fmt: skip
    assert booleans == PREDICATES


@pytest.mark.parametrize("op", sorted(KEEPS_DIGITS))
def test_digits_are_those_of_the_operand(op: str) -> None:
    x = draw((4, 50), np.float32)
    more = MORE.get(op, [])
    (y,) = compute(op, x, *more)
    assert np.isin(y, [*x.ravel(), *-x.ravel(), *more, 0]).all()


@pytest.mark.parametrize("op", sorted(ROUNDS))
def test_rounding(op: str) -> None:
    x = draw((4, 6), np.float32) * 10
    y = compute(op, x)[0]
    assert np.array_equal(y, np.round(y)) and (np.abs(y - x) < 1).all()


def takes_integers(op: str) -> bool:
    return "tensor(int32)" in SCHEMAS[op].inputs[0].types


# The reference computes Gemm of integers in floats.
@pytest.mark.parametrize("op", sorted(filter(takes_integers, WRAPS - {"Gemm"})))
def test_integers_wrap_around(op: str) -> None:
    least, most = -(2**31), 2**31
    rng = np.random.default_rng(0)
    x, y = (rng.integers(least, most, (8, 8)).astype(np.int32) for _ in range(2))
    x[0, 0] = least
    second = {"CumSum": np.array(0), "CumProd": np.array(0), "Pow": np.full((8, 8), 3, np.int32)}
    second |= dict.fromkeys(REDUCES, np.array([1]))
    count = 2 if op == "Sum" or op in REDUCES else SCHEMAS[op].min_input
    arrays = [x, second.get(op, y)][:count]
    attrs = {"equation": "ij->i"} if op == "Einsum" else {}
    wider = [a.astype(np.int64) if a.ndim == 2 else a for a in arrays]
    (narrow,), (exact,) = (compute(op, *a, **attrs) for a in (arrays, wider))
    np.testing.assert_array_equal(narrow.astype(np.int32), exact.astype(np.int32))
    assert op == "BitwiseNot" or exact.min() < least or exact.max() >= most
