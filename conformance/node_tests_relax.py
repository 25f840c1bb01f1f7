"""TVM with Relax as a target of the node tests, and its own importer of ONNX on what it is given.

TVM runs in an environment of its own, see ``tests/relax/relax_live.py``. That of serde's column is
the same importer, on what the profile ``relax`` writes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import onnx

from serde.formats.onnx import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import raise_to_ir
from serde.legalize.profiles import get_profile
from serde.passes import tidy
from tests.relax.relax_live import RelaxError, run

from .node_target import Target


class Relax(Target):
    """Models by TVM's importer, compiled for Relax's virtual machine and run."""

    name = "relax"
    title = "Relax"
    importer = "`tvm.relax.frontend.onnx.from_onnx`"
    notes = (
        "The importer reads what the profile `relax` writes in the first column, and the tests as "
        "they are in the second (apache-tvm 0.27)."
    )

    def ours(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        options = get_profile("relax").writing()
        made = to_proto(from_ir(tidy(raise_to_ir(decode(model))), **options))
        try:
            return self.theirs(made, feeds)
        except RelaxError as error:  # what is not refused has to run
            raise AssertionError(str(error)) from error

    def theirs(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        held = {t.name for t in model.graph.initializer}
        given = {i.name: feeds[i.name] for i in model.graph.input if i.name not in held}
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/m.onnx")
            return run(f"{folder}/m.onnx", given)
