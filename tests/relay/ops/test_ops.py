"""Every rule against TVM: modules of one operator with what live TVM computed for them.

``recorded.zip.xz`` holds them; ``record.py`` makes it. ``test_live.py`` has TVM compute them anew.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from serde.errors import Unconvertible
from serde.formats.relay import registry
from serde.formats.relay.ops.random import draws
from serde.formats.relay.ops.unsupported import REASONS
from serde.formats.relay.partial_eval.operators import TRANSPARENT
from serde.formats.relay.rules import reads
from testing.relay import operators
from testing.relay.operators import ARCHIVE, EXPECTED
from testing.relay.running import assert_equal, graph_of, names, read_module, run

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/relay-operators.md"
REFUSED = {op for ops in REASONS.values() for op in ops.split()}


def check(name: str, opset: int, folder: Path) -> None:
    case, record = EXPECTED[name], read_module(ARCHIVE, name)
    graph = graph_of(record, name, folder)
    got = run(graph, record.feeds, max(opset, case.since), folder)
    assert_equal(got, record.outputs, case.rows)


@pytest.mark.parametrize("name", names(ARCHIVE))
def test_operator(name: str, tmp_path: Path) -> None:
    check(name, 17, tmp_path)


@pytest.mark.parametrize("opset", [11, 13, 21])
@pytest.mark.parametrize("name", names(ARCHIVE)[::24])
def test_operator_at_other_opsets(name: str, opset: int, tmp_path: Path) -> None:
    check(name, opset, tmp_path)


def test_every_case_is_recorded() -> None:
    assert set(EXPECTED) == set(names(ARCHIVE))


def test_every_operator_has_a_rule_or_is_refused_by_name() -> None:
    known = registry.operators()
    assert (
        known - set(reads.rules) - set(draws.rules) - TRANSPARENT - set(operators.UNDEFINED)
        == set()
    )
    assert known >= REFUSED - {"vm.shape_func", "torch_op"}  # which it has no more, or not yet


def test_the_page_of_operators_is_what_the_table_says() -> None:
    """Run ``python -m testing.relay.operators > docs/reference/relay-operators.md`` after a change."""
    assert PAGE.read_text() == "".join(f"{line}\n" for line in operators.lines())


def test_operators_are_compared_with_tvm() -> None:
    counts = Counter(operators.class_of(op)[0] for op in operators.operators())
    assert counts["converted"] >= 200
    assert counts["converted, not compared"] == 0


def test_defaults_are_tvms_own() -> None:
    wrong = []
    for op, rule in reads.rules.items():
        declared = registry.fields(registry.attrs_key(op) or "") or {}
        for name, attribute in rule.attributes.items():
            field = declared.get(name)
            if field is None or field.default is registry.REQUIRED or attribute.is_required:
                continue
            default = field.default if field.default != "" else None
            ours = attribute.default if attribute.default != "" else None
            if ours is None or default is None:  # None stands for what the layout or type tells
                continue
            same = tuple(ours) if isinstance(ours, (tuple, list)) else ours
            if isinstance(default, tuple) and isinstance(same, tuple) and len(same) == 1:
                same = same * len(default)
            if same != default:
                wrong.append(f"{op}.{name}: {ours!r}, TVM has {default!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("op", sorted(REFUSED))
def test_refusals_say_why(op: str) -> None:
    from serde.formats.relay import ast
    from serde.formats.relay.to_ir import module_graph, to_ir

    x = ast.Var("x", ast.TensorType((2,), "float32"))
    module = ast.Module({"main": ast.Function((x,), ast.Call(ast.Op(op), (x,)))})
    with pytest.raises(Unconvertible) as caught:
        to_ir(module_graph(module))
    (problem,) = caught.value.problems
    assert problem.op == op
    assert "no rule" not in problem.reason
