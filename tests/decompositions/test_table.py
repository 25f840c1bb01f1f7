"""The table of decompositions, and what of it a target gets."""

from __future__ import annotations

import pytest

from serde.decompositions.loops import WITHOUT_CONTROL_FLOW
from serde.decompositions.table import LOOPING, add_decompositions, decompositions
from serde.legalize.target import legalization_table
from serde.spec import schema

ALL = {*schema.names()}


def rules_for(lacking: set[str], own: tuple[str, ...] = ()) -> dict:
    table = legalization_table("toy")
    table(*own)(lambda g, *xs: None) if own else None
    return dict(add_decompositions(table, ALL - lacking).rules)


def test_decompositions_are_of_operators_of_the_standard() -> None:
    rules_for(set())
    assert decompositions.rules.keys() | LOOPING <= ALL
    assert decompositions.rules.keys() >= LOOPING and len(decompositions.rules) > 20


@pytest.mark.parametrize("op", ["LRN", "OneHot", "GRU", "ReduceL1"])
def test_what_a_target_lacks_is_decomposed(op: str) -> None:
    assert rules_for({op}) == {op: decompositions.rules[op]}
    assert rules_for({op, "Relu"}).keys() == {op}


def test_the_rule_of_a_target_goes_first() -> None:
    rules = rules_for({"LRN", "OneHot"}, own=("LRN",))
    assert rules["LRN"] is not decompositions.rules["LRN"]
    assert rules["OneHot"] is decompositions.rules["OneHot"]


def test_without_loops_control_flow_is_unrolled_and_nothing_loops() -> None:
    rules = rules_for({"Loop", "If", *LOOPING})
    assert rules.keys() == {"Loop", "If"} < WITHOUT_CONTROL_FLOW.keys()
    assert rules_for(set(LOOPING)).keys() == LOOPING
