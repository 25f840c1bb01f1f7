"""TVM 0.17 as a target of the node tests, and its own importer ``relay.frontend.from_onnx``.

TVM runs in an environment of its own, see ``tests/relay/tvm_live.py``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from serde.formats.onnx.reader import decode
from serde.formats.relay.encode import encode
from serde.formats.relay.from_ir import from_ir
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from tests.relay.tvm_live import ask

from .node_target import Target


class Relay(Target):
    """Models as Relay's JSON with its parameters, compiled for the virtual machine and run."""

    name = "relay"
    title = "TVM 0.17"
    importer = "`tvm.relay.frontend.from_onnx`"
    notes = "Both are compiled at level 1 for TVM's virtual machine."

    def ours(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        graph = from_ir(tidy(raise_to_ir(decode(model))))
        with tempfile.TemporaryDirectory() as folder:
            path, *params = encode(graph, Path(folder) / "m.json")
            given = {v.name: feeds[v.name] for v in graph.inputs}
            text = Path(path).read_text()
            return self.run(folder, given, "run", ["json", text], *_ends(folder), *params)

    def theirs(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/m.onnx"
            onnx.save(model, path)
            return self.run(folder, feeds, "run_onnx", path, *_ends(folder), onnx.__path__[0])

    def run(self, folder: str, feeds: dict[str, Any], *request: Any) -> Sequence[Any]:
        """What TVM answers, from one file of arrays to another."""
        np.savez(f"{folder}/in.npz", **feeds)
        ask(*request)
        with np.load(f"{folder}/out.npz") as found:
            return [found[f"arr_{i}"] for i in range(len(found.files))]


def _ends(folder: str) -> tuple[str, str]:
    return f"{folder}/in.npz", f"{folder}/out.npz"
