"""What is said of operators holds for what onnx computes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from serde.spec import number_traits, schema
from serde.spec.number_traits import BOUNDED, KEEPS, MOVES, OF_A_DOMAIN
from serde.spec.traits import ELEMENTWISE

TABLES = {n: t for n, t in vars(number_traits).items() if n.isupper()}
X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32) * 1000
UNARY = (ELEMENTWISE | {"Pow"}) - {"BitwiseNot", "Cast", "IsInf", "IsNaN", "Not"}
MORE = {"PRelu": [np.full((4, 6), 0.5, np.float32)]}  # operands beside the data


def compute(op, *arrays):
    """What onnx's reference computes, at the newest opset."""
    names = [f"x{i}" for i in range(len(arrays))]
    ends = [helper.make_tensor_value_info(n, 1, None) for n in (*names, "y")]
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "g", ends[:-1], ends[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))[0]


@pytest.mark.parametrize("table", TABLES)
def test_operators_exist(table):
    assert not [op for op in TABLES[table] if schema.first_version(op) is None]


@pytest.mark.parametrize("op", sorted(op for op in MOVES if MOVES[op]))
def test_places_are_operands(op):
    assert max(MOVES[op]) < len(schema.operator(op).inputs)


def is_unary(op):
    return len(schema.operator(op).inputs) == 1 and not schema.operator(op).required


@pytest.mark.parametrize("op", sorted(op for op in BOUNDED if is_unary(op)))
def test_bounds(op):
    if "Random" in op or "Window" in op or op in ("Bernoulli", "IsInf", "IsNaN"):
        pytest.skip("not of the data")
    x = X / np.abs(X).max() if op in ("Acos", "Asin") else X / 40
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.abs(compute(op, x)).max() <= BOUNDED[op] + 1e-6


@pytest.mark.parametrize("op", sorted(KEEPS - {"BitShift"}))
def test_sizes_that_are_kept(op):
    with np.errstate(over="ignore"):
        y = compute(op, X, *MORE.get(op, ()))
    assert np.abs(y).max() <= 2 * np.abs(X).max() and onnx.defs.has(op)


@pytest.mark.parametrize("op", sorted(UNARY))
def test_what_makes_nan_of_some_numbers(op):
    more = [np.full((4, 6), 0.5, np.float32)] if op == "Pow" else []
    with np.errstate(all="ignore"):
        y = compute(op, X, *more)
    assert np.isnan(y).any() == (op in OF_A_DOMAIN)
