"""Modules of the corpus TVM 0.17 wrote, converted and compared with what TVM computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.relay.running import assert_equal, graph_of, names, read_module, run

ARCHIVE = Path(__file__).with_name("corpus.zip")
DEFINED = {"op-all_class_nms": 4, "dyn-unique": 4}  # leading rows of the first output


@pytest.mark.parametrize("opset", [11, 17, 21])
@pytest.mark.parametrize("name", names(ARCHIVE))
def test_numbers(name: str, opset: int, tmp_path: Path) -> None:
    case = read_module(ARCHIVE, name)
    graph = graph_of(case, name, tmp_path)
    assert_equal(run(graph, case.feeds, opset, tmp_path), case.outputs, DEFINED.get(name))
