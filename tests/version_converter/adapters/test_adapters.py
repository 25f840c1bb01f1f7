"""The opset tables against the standard's own history."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from onnx import defs, helper

from serde.errors import Unconvertible
from serde.ir.graph import DType
from serde.legalize.convert import lower_to
from serde.legalize.target import LOWEST_WRITTEN
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.schema import find
from serde.version_converter.adapters import downgrades, upgrades
from testing.version_converter.rules import module_of, rules_of

# Changes of signature that need no rule in a direction, and why.
DOWNWARD = {
    ("BatchNormalization", 9): "spatial, lost at 9, has the default 1 that is meant",
    ("Constant", 11): "the IR has no Constant: constants are values",
    ("Constant", 12): "the IR has no Constant: constants are values",
    ("Scatter", 11): "the IR has ScatterElements",
    ("Upsample", 10): "the IR has Resize",
}
UPWARD = {
    ("Attention", 24): "an optional operand more",
    ("Constant", 11): "constants become values whatever holds them: opset.constant",
    ("Constant", 12): "constants become values whatever holds them: opset.constant",
    ("Gemm", 11): "an operand became optional",
    ("Loop", 11): "states became optional",
    ("MaxPool", 8): "an optional output more",
    ("OptionalHasElement", 18): "an operand became optional",
    ("Pad", 18): "an optional operand more",
}


@cache
def history() -> dict[str, dict[int, Any]]:
    """The schemas of the default domain: by operator, by version."""
    schemas: dict[str, dict[int, Any]] = defaultdict(dict)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            schemas[schema.name][schema.since_version] = schema
    return schemas


def attributes(schema: Any) -> dict[str, Any]:
    return {
        name: (
            str(a.type),
            a.required,
            helper.get_attribute_value(a.default_value) if a.default_value.type else None,
        )
        for name, a in schema.attributes.items()
    }


def changes(old: Any, new: Any) -> set[str]:
    """What of the signature changed: ``inputs``, ``outputs``, ``attributes``, ``additions``."""
    parts = {"deprecated"} if new.deprecated else set()
    for side in ("inputs", "outputs"):
        formals = [[(f.option, f.min_arity) for f in getattr(s, side)] for s in (old, new)]
        if formals[0] != formals[1]:
            parts.add(side)
    before, after = attributes(old), attributes(new)
    if any(after.get(name) != value for name, value in before.items()):
        parts.add("attributes")
    if after.keys() - before.keys():
        parts.add("additions")  # whose default means what was: the builder adds and drops them
    return parts


def real_changes() -> list[tuple[str, int, frozenset[str]]]:
    return [
        (op, after, frozenset(parts))
        for op, versions in sorted(history().items())
        for before, after in pairwise(sorted(versions))
        if not versions[before].deprecated and (parts := changes(versions[before], versions[after]))
    ]


@pytest.mark.parametrize(("op", "version", "what"), real_changes())
def test_change_has_rules(op: str, version: int, what: frozenset[str]) -> None:
    """Each change of signature has a rule in each direction, or stands above with a reason."""
    if what == {"additions"}:
        return
    if version > LOWEST_WRITTEN:
        assert (op in downgrades[version]) != ((op, version) in DOWNWARD)
    assert (op in upgrades[version]) != ((op, version) in UPWARD)


@pytest.mark.parametrize("tables", [downgrades, upgrades], ids=["downgrades", "upgrades"])
def test_rules_stand_at_changes(tables: Any) -> None:
    """No rule stands at a version at which the standard changed nothing of its operator."""
    stray = [
        (version, op)
        for version, table in tables.items()
        for op in table.rules
        if version not in history()[op]
    ]
    assert not stray


def test_excuses_are_of_changes() -> None:
    """Nothing is excused that did not change."""
    real = {(op, version) for op, version, _ in real_changes()}
    assert DOWNWARD.keys() | UPWARD.keys() <= real


def test_every_rule_upward_is_reached() -> None:
    """Rules upward belong to operators that existed, or were renamed, one version down."""
    for version, table in upgrades.items():
        for op in table.rules:
            assert find(op, version - 1), f"{op} is not of opset {version - 1}"


def test_every_rule_downward_is_run_by_the_tests_of_its_module() -> None:
    """The modules are those that rules are written in, whatever they are called."""
    rules = [rule for table in downgrades.values() for rule in table.rules.values()]
    for name in sorted({module_of(rule.function) for rule in rules}):
        module, short = import_module(name), name.rpartition(".")[2]
        tests = Path(__file__).with_name(f"test_{short}.py").read_text()
        assert not rules_of(module) or "rules_of(" in tests, name


TEXT, BYTES = (DType.STRING, (2,)), (DType.UINT8, (9,))
NEWER = [  # operators that no older ones stand for, and the lowest opset that has them
    ("StringConcat", [TEXT, TEXT], 20), ("SequenceConstruct", [(DType.FLOAT32, (2,))], 11),
    ("ImageDecoder", [BYTES], 20),
]  # fmt: skip


@pytest.mark.parametrize(("op", "operands", "lowest"), NEWER, ids=lambda v: str(v)[:20])
def test_what_no_operators_stand_for_is_refused(op: str, operands: Any, lowest: int) -> None:
    g = OnnxBuilder("one")
    graph = g.build([g[op](*(g.input(f"x{i}", *o) for i, o in enumerate(operands)))])
    with pytest.raises(Unconvertible, match=f"opset {lowest} is the lowest"):
        lower_to(graph, lowest - 1)
    assert lower_to(graph, lowest).nodes
