"""Einsum over axes of which one has size 1 and another n, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from serde.errors import Unconvertible
from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to, raise_to_ir
from serde.spec.einsum_equation import broadcast_size, parse_equation
from serde.version_converter.adapters import einsum
from testing import directions
from testing.onnx_live import run_model
from testing.version_converter.rules import check_rule, rules_of

CASES = {
    "ij,jk->ik": [(3, 1), (2, 2)],
    "ij,jk->ijk": [(3, 1), (2, 2)],
    "ij,j->j": [(3, 1), (4,)],
    "ij,i->j": [(3, 4), (1,)],
    "i,i,i->": [(1,), (3,), (1,)],
    "i,i->i": [(3,), (1,)],
    "bij,bjk->bik": [(1, 3, 2), (4, 2, 5)],
    "bhqd,bhkd->bhqk": [(2, 3, 4, 5), (2, 1, 6, 5)],
    "ii,i->i": [(1, 1), (3,)],
    "ii,ij->j": [(3, 3), (1, 2)],
    "...i,...i->...": [(4, 1), (4, 3)],
    "a...,ba...->b...": [(2, 1, 3), (1, 2, 5, 3)],
    "ij,jk,kl->il": [(2, 1), (3, 1), (4, 5)],
    "ab,cd->": [(1, 2), (1, 3)],
}
LETTERS = "abcde"


def ir_of(equation: str, shapes: list[tuple[int, ...]], named: bool) -> Graph:
    """An Einsum at opset 12, its inputs of sizes known or all named."""
    inputs = [
        helper.make_tensor_value_info(
            f"x{i}", TensorProto.FLOAT, [f"x{i}_{a}" if named else d for a, d in enumerate(shape)]
        )
        for i, shape in enumerate(shapes)
    ]
    node = helper.make_node("Einsum", [i.name for i in inputs], ["y"], equation=equation)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    return raise_to_ir(decode(model))


def feeds_of(shapes: list[tuple[int, ...]], seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {f"x{i}": random.standard_normal(s).astype("float32") for i, s in enumerate(shapes)}


def draw_case(random: np.random.Generator) -> tuple[str, list[tuple[int, ...]]]:
    """An equation over a few labels, some repeated in an operand; a third of the axes are 1."""
    labels = LETTERS[: random.integers(1, 6)]
    sizes = {c: int(random.integers(2, 4)) for c in labels}
    rank = int(random.integers(0, 3)) if random.random() < 0.3 else None
    around = [int(n) for n in random.integers(2, 4, rank or 0)]
    terms, shapes = [], []
    for _ in range(random.integers(1, 4)):
        term = [str(c) for c in random.permutation(list(labels))[: random.integers(1, 5)]]
        one = {c: random.random() < 0.3 for c in term}
        term += term[:1] if random.random() < 0.15 else []
        shape = [1 if one[c] else sizes[c] for c in term]
        if rank is not None:
            at = int(random.integers(0, len(term) + 1))
            shape[at:at] = [1 if random.random() < 0.3 else n for n in around]
            term.insert(at, "...")
        terms.append("".join(term))
        shapes.append(tuple(shape))
    used = sorted(set("".join(terms)) - {"."})
    output = [str(c) for c in random.permutation(used)[: random.integers(0, len(used) + 1)]]
    output += ["..."] if rank is not None else []
    return f"{','.join(terms)}->{''.join(output)}", shapes


def check(graph: Graph, equation: str, feeds: dict[str, np.ndarray]) -> None:
    expected = np.einsum(equation, *feeds.values())
    (y,) = run_model(to_proto(graph), feeds)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("version", "op"), rules_of(einsum))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("named", [False, True], ids=["static", "named"])
@pytest.mark.parametrize("opset", [9, 11, 12, 17, 21])
@pytest.mark.parametrize("equation", CASES)
def test_sizes_of_one_broadcast(equation, opset, named):
    graph = lower_to(ir_of(equation, CASES[equation], named), opset)
    check(graph, equation, feeds_of(CASES[equation]))


@pytest.mark.parametrize("seed", range(60))
def test_random_equations(seed):
    equation, shapes = draw_case(np.random.default_rng(seed))
    feeds = feeds_of(shapes, seed)
    for named in (False, True):
        ir = ir_of(equation, shapes, named)
        for opset in (11, 21):
            check(lower_to(ir, opset), equation, feeds)
        if not named:
            check(from_ir(ir, 17, profile="relax"), equation, feeds)


@pytest.mark.parametrize("form", ["mxnet", "relay"])
@pytest.mark.parametrize("equation", CASES)
def test_other_formats(equation, form, tmp_path):
    import serde

    shapes = CASES[equation]
    feeds, path = feeds_of(shapes), tmp_path / directions.FILES[form]
    serde.save(ir_of(equation, shapes, False), path)
    (y,) = directions.RUN[form](path, feeds, 100)
    expected = np.einsum(equation, *feeds.values())
    assert y.shape == expected.shape or (
        form == "mxnet" and y.shape == (1,) and expected.shape == ()
    )
    np.testing.assert_allclose(y.reshape(expected.shape), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("equation", CASES)
def test_no_axis_of_one_is_left_to_broadcast(equation):
    """What targets see has one size for each label."""
    nodes = ir_of(equation, CASES[equation], False).nodes
    assert {n.op for n in nodes} <= {"Einsum", "Mul", "Squeeze"}
    for node in (n for n in nodes if n.op == "Einsum"):
        shapes = [v.shape for v in node.inputs]
        terms, _ = parse_equation(node.attrs["equation"], [len(s) for s in shapes])
        sizes: dict[str, set] = {}
        for labels, shape in zip(terms, shapes, strict=True):
            for label, size in zip(labels, shape, strict=True):
                sizes.setdefault(label, set()).add(size)
        assert all(len(dims) == 1 for dims in sizes.values())


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ij,jk->ik", [(3, 2), (4, 2)], "axis 'j' has the size 2 in input 0 and 4 in input 1"),
        ("ii->i", [(1, 3)], "axes 'i' of input 0 have the sizes 1 and 3"),
        ("i,i,i->", [(1,), (3,), (4,)], "axis 'i' has the size 3 in input 1 and 4 in input 2"),
        ("ij->ij", [(2,)], "is not for operands of rank 1"),
    ],
)
def test_sizes_that_differ_are_refused(equation, shapes, reason):
    with pytest.raises(Unconvertible, match=reason):
        ir_of(equation, shapes, False)


@pytest.mark.parametrize(
    ("a", "b", "size"),
    [(1, 3, 3), (3, 1, 3), (3, 3, 3), ("N", 1, "N"), (1, None, None), ("N", "N", "N"),
     ("N", "M", None), ("N", 3, 3), (None, 3, 3), (None, "N", None)],
)  # fmt: skip
def test_size_of_two_that_broadcast(a, b, size):
    assert broadcast_size(a, b) == size
