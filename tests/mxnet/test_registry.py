"""Each operator of MXNet's registry is in one class, and the table of them is as it is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.formats.mxnet.bind.op_names import CANONICAL
from serde.formats.mxnet.decode import decode_symbol
from serde.formats.mxnet.io.symbol_json import parse_symbol
from serde.formats.mxnet.operators import OPERATORS
from serde.formats.mxnet.ops.random.sampling import draws
from serde.formats.mxnet.rules import reads
from serde.formats.mxnet.to_ir import to_ir
from serde.formats.mxnet.unsupported_ops import BY_REASON, REFUSED
from serde.passes.cut_inputs import with_inputs
from testing.mxnet.make_registry import FILE, SECOND_FILE
from tests.mxnet.make_table import (
    CONVERTED,
    FEWEST,
    FORM,
    OPEN,
    RANDOM,
    TABLE,
    as_markdown,
    rows,
    rows_of_second,
)
from tests.mxnet.test_signatures import OLD

NAMES = {*OLD, *json.loads(FILE.read_text()), *json.loads(SECOND_FILE.read_text())}


NOT_YET = {  # attention in a sliding window
    f"_contrib_sldwin_atten_{part}" for part in ("context", "mask_like", "score")
}


def test_table() -> None:
    """Run ``python -m tests.mxnet.make_table`` after a change of rules or cases."""
    assert TABLE.read_text() == "\n".join(as_markdown()) + "\n"


def test_what_is_declared_is_registered() -> None:
    assert not set(REFUSED) - NAMES
    assert not {CANONICAL.get(op, op) for op in OPERATORS} ^ OPERATORS.keys()
    of_gpus_and_gradients = {"CuDNNBatchNorm", "_contrib_mrcnn_mask_target", "_grad_add"}
    assert OPERATORS.keys() - NAMES == of_gpus_and_gradients
    assert not {op for op, about in OPERATORS.items() if about.inference} - set(reads.rules)


def test_nothing_is_refused_that_has_a_rule() -> None:
    assert not set(REFUSED) & (set(reads.rules) | set(draws.rules))
    assert not set(draws.rules) & set(reads.rules)
    assert sum(len(ops.split()) for ops in BY_REASON.values()) == len(REFUSED)


def test_every_converted_operator_is_compared() -> None:
    least = {CONVERTED: FEWEST, FORM: FEWEST, RANDOM: 1}
    few = {r.name: r.cases for r in rows() if r.cases < least.get(r.kind, 0)}
    assert not few


def test_operators_of_mxnet_2_are_compared() -> None:
    """All that it brought and that converts, but where one rule reads many operators."""
    assert {r.name for r in rows_of_second() if r.kind == OPEN} == NOT_YET
    untested = {r.name for r in rows_of_second() if r.kind == CONVERTED and not r.cases}
    assert untested == set()


@pytest.mark.parametrize("op", ["sgd_update", "_cvimread"])
def test_the_error_gives_the_reason(op: str) -> None:
    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": op, "name": "there", "inputs": [[0, 0, 0]]},
    ]
    graph = decode_symbol(parse_symbol(json.dumps({"nodes": nodes, "heads": [[1, 0]]})), None, "t")
    typed_graph = with_inputs(graph, {"x": ((2, 3), np.dtype("float32"))})
    with pytest.raises(Unconvertible) as caught:
        to_ir(typed_graph)
    assert [p.reason for p in caught.value.problems] == [REFUSED[op]]
