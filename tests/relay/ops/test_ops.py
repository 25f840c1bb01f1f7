"""Every rule against TVM: modules of one operator with what live TVM computed for them.

``recorded.zip`` holds them; ``record.py`` makes it. ``test_live.py`` has TVM compute them anew.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from serde.errors import Unconvertible
from serde.formats.relay import registry
from serde.formats.relay.ops.refused import REASONS
from serde.formats.relay.rules import reads
from tests.relay.ops.table import CASES
from tests.relay.running import assert_equal, graph_of, names, recorded, run

ARCHIVE = Path(__file__).with_name("recorded.zip")
REFUSED = {op for ops in REASONS.values() for op in ops.split()}


def folder_name(case: str) -> str:
    return case.replace("(", "").replace(")", "").replace(", ", "x")


@pytest.mark.parametrize("name", names(ARCHIVE))
def test_operator(name: str, tmp_path: Path) -> None:
    case = recorded(ARCHIVE, name)
    graph = graph_of(case, name, tmp_path)
    assert_equal(run(graph, case.feeds, 17, tmp_path), case.outputs)


@pytest.mark.parametrize("opset", [11, 13, 21])
@pytest.mark.parametrize("name", names(ARCHIVE)[::12])
def test_operator_at_other_opsets(name: str, opset: int, tmp_path: Path) -> None:
    case = recorded(ARCHIVE, name)
    graph = graph_of(case, name, tmp_path)
    assert_equal(run(graph, case.feeds, opset, tmp_path), case.outputs)


def test_every_case_is_recorded() -> None:
    assert {folder_name(c) for c in CASES} == set(names(ARCHIVE))


def written_operators() -> set[str]:
    found: set[str] = set()
    with zipfile.ZipFile(ARCHIVE) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                nodes = json.loads(archive.read(name))["nodes"]
                found |= {n["repr_str"] for n in nodes if n["type_key"] == "Op"}
    return found


def test_every_operator_has_a_rule_or_is_refused_by_name() -> None:
    ours = {"if", "while"}  # made by elaboration
    from serde.formats.relay.elaborate_calls import TRANSPARENT

    known = {o for o in registry._ops() if not o.startswith(("relax.", "tir."))}
    without = {"hardswish", "scatter"}  # names TVM 0.17 lists and does not define
    assert known - set(reads.rules) - TRANSPARENT - without == set()
    assert REFUSED - {"vm.shape_func", "torch_op"} <= known
    assert ours <= set(reads.rules)


def test_defaults_are_tvms_own() -> None:
    wrong = []
    for op, rule in reads.rules.items():
        declared = registry.fields(registry.attrs_key(op) or "") or {}
        for name, attribute in rule.attributes.items():
            field = declared.get(name)
            if field is None or field.default is registry.REQUIRED or attribute.required:
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
