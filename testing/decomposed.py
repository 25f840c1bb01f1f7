"""Operators without themselves: what stands for them in targets that lack them, run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import onnx

from serde.decompositions.table import add_decompositions, decompositions
from serde.errors import SerdeError
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import DType
from serde.legalize.convert import lower_to_target, raise_to_ir
from serde.legalize.legalizer import Legalizer
from serde.legalize.target import IR, Target, legalization_table
from serde.spec import schema
from testing.node_cases import Case, freeze, verdict
from testing.onnx_live import run, run_model
from testing.version_converter.rules import cases_of, module_of, spread

OPSET, FEW = 21, 3


def operators_of(module: ModuleType) -> list[str]:
    """The operators whose decomposition is written in a module, and that there are tests of."""
    make_target({"Relu"})  # which fills the table
    rules = decompositions.rules.items()
    ops = (op for op, rule in rules if module_of(rule.function) == module.__name__)
    return sorted(op for op in ops if cases_of(op))


def make_target(lacking: Collection[str]) -> Target:
    """A target that has all operators of an opset but some."""
    supports: Mapping[str, Any] = {op: {} for op in schema.names(OPSET) if op not in lacking}
    table = add_decompositions(legalization_table("none"), supports)
    has_loops = "Loop" in supports
    return Target("t", OPSET, supports, legalizations=table, control_flow=has_loops)


def check_decomposed(op: str, lacking: Collection[str] = ()) -> None:
    """Assert that the numbers of a few node tests hold without the operator."""
    target, done = make_target({op, *lacking}), 0
    for case in spread(cases_of(op)):
        forms = [form for form in (case, freeze(case)) if form is not None]
        done += any(is_right_without(form, target, {op, *lacking}) for form in forms)
        if done == FEW:
            break
    assert done, f"no node test of {op} can be decomposed"


def is_right_without(case: Case, target: Target, lacking: Collection[str]) -> bool:
    """Whether a test can be written without operators; its numbers have to hold if it can."""
    try:
        graph = lower_to_target(raise_to_ir(decode(case.model)), target)
    except SerdeError as error:
        assert "does not end" not in str(error)
        return False
    assert not {n.op for n in graph.nodes} & {*lacking}
    assert verdict(case, to_proto(graph)) == "right", case.name
    return True


def compute(
    emit: Callable[..., Any], *arrays: np.ndarray, named: bool = False, opset: int = OPSET
) -> list[np.ndarray]:
    """What ONNX Runtime makes of what a function emits for inputs, of sizes known or named."""
    g = Legalizer("one", IR)
    feeds = {f"x{i}": a for i, a in enumerate(arrays)}
    inputs = [
        g.input(n, DType.of(a.dtype), name_sizes(n, a) if named else a.shape)
        for n, a in feeds.items()
    ]
    results = emit(g, *inputs)
    results = results if isinstance(results, tuple) else (results,)
    return run(g.build(results), feeds, opset)


def name_sizes(name: str, array: np.ndarray) -> tuple[str, ...]:
    """A shape of which only the rank is known."""
    return tuple(f"{name}_{axis}" for axis in range(array.ndim))


def run_without_domains(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """What ONNX Runtime computes for a model of one input, written in the standard's operators."""
    graph = lower_to_target(raise_to_ir(decode(model)), make_target(()))
    assert not any(node.domain for node in graph.all_nodes())
    return run_model(to_proto(graph), {model.graph.input[0].name: x})
