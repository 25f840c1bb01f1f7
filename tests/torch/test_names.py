"""Names of classes, members and variables."""

from __future__ import annotations

import keyword
from itertools import count
from pathlib import Path
from random import Random

import onnx
import onnx.parser
import pytest

import serde
from serde.formats.torch.source.names import (
    GLOBALS,
    RESERVED,
    Scope,
    shorten,
    to_class_name,
    to_identifier,
)

HOSTILE = ["", "class", "0", "3conv", "a b", "x'); import os; ('", "a\nb", "é", "__init__", "_", "a.b/c",
           "None", "f", "path", "TYPES", "x" * 500]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_gives_an_identifier(text: str) -> None:
    for name in (to_identifier(text), to_class_name(text)):
        assert name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
        assert not name.startswith("__") or name.endswith("_")
    assert to_class_name(text) not in GLOBALS


def test_members_do_not_hide_those_of_nn_module() -> None:
    scope = Scope(RESERVED)
    assert [scope.claim("train"), scope.claim("conv"), scope.claim("conv")] == [
        "train_2", "conv", "conv_2",
    ]  # fmt: skip
    assert {"self", "torch", "F"} <= GLOBALS


def test_names_are_claimed_as_one_that_counts_from_the_start_would() -> None:
    random, scope, used = Random(0), Scope(["a"]), {"a"}
    for _ in range(2000):
        if random.random() < 0.45 and len(used) > 1:
            name = random.choice(sorted(used))
            scope.release(name)
            used.discard(name)
            continue
        stem = random.choice(["a", "b", "a_2", "b_07"])
        numbered = (f"{stem}_{number}" for number in count(2))
        expected = stem if stem not in used else next(n for n in numbered if n not in used)
        assert scope.claim(stem) == expected
        used.add(expected)


def test_many_claims_of_one_name_ask_for_few_others() -> None:
    class Counted(set):
        asked = 0

        def __contains__(self, name: object) -> bool:
            self.asked += 1
            return super().__contains__(name)

    scope = Scope()
    scope.used = Counted()
    assert [scope.claim("split") for _ in range(3000)][-1] == "split_3000"
    assert scope.used.asked < 3 * 3000


def test_layers_lose_what_they_all_begin_with() -> None:
    names = ["resnetv10_conv0_fwd", "resnetv10_stage1_conv0_fwd", "resnetv10_dense0_fwd"]
    assert [*shorten(names).values()] == ["conv0", "dense0", "stage1_conv0"]
    assert shorten(["fc1"]) == {"fc1": "fc1"}
    assert shorten(["conv1", "conv2"]) == {"conv1": "conv1", "conv2": "conv2"}


@pytest.mark.parametrize("name", [*HOSTILE, " ", "...", "/", "::", "a..b", "/ /"])
def test_a_layer_of_any_name_has_a_place(name: str, tmp_path: Path) -> None:
    graph = onnx.parser.parse_graph(
        "g (float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}>"
        "{ y = Gemm(x, w) }"
    )
    graph.node[0].name = name
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), tmp_path / "m.onnx")
    serde.convert(tmp_path / "m.onnx", tmp_path / "m.py", verify=False)
    compile((tmp_path / "m.py").read_text(), "m.py", "exec")
