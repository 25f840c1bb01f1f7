"""The IR written as Relay and run by live TVM: onnx's node tests, text as well as JSON."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import SerdeError
from serde.formats.onnx.reader import decode as decode_model
from serde.formats.relay.encode import encode
from serde.formats.relay.from_ir import from_ir
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.node_cases import all_cases, difference
from testing.relay.tvm_live import ask

EACH = 48  # every so many node tests, all of which take an hour


def calls(case):
    """The graph of Relay calls a node test becomes."""
    return from_ir(tidy(raise_to_ir(decode_model(case.model))))


def run_tvm(graph, folder, form, feeds):
    """What TVM makes of the files the graph is written to."""
    path = folder / f"m.{form}"
    files = encode(graph, path)
    np.savez(folder / "in.npz", **feeds)
    kind = "json" if form == "json" else "text"
    params = files[1] if len(files) > 1 else None
    ask("run", [kind, path.read_text()], f"{folder}/in.npz", f"{folder}/out.npz", params)
    with np.load(folder / "out.npz") as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


@pytest.mark.parametrize("part", range(4))
def test_node_tests_are_right_or_refused(tmp_path, part):
    right = 0
    for at, case in enumerate(all_cases()[part::4][::EACH]):
        try:
            graph = calls(case)
        except SerdeError:
            continue
        feeds, expected = case.data[0]
        names = [i.name for i in case.model.graph.input]
        inputs = dict(zip(names, feeds, strict=False))
        inputs = {v.name: inputs[v.name] for v in graph.inputs}
        got = run_tvm(graph, tmp_path, "json" if at % 2 else "relay", inputs)
        assert difference(case, expected, got) is None, case.name
        right += 1
    assert right >= 5
