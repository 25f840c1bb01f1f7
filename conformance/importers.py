"""The frameworks' own importers of ONNX as targets, to compare serde with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from serde.errors import SerdeError

from .matrix import NotRun, last_line
from .mxnet_exporter import restore_mapping
from .targets import MXNet, Relax, Relay


class ImportFailed(SerdeError):
    """The importer, or the framework with what it made, raised an error."""


def run_importer(run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """What an importer's result computes; whatever it raises counts as a refusal."""
    try:
        return run()
    except NotRun:
        raise
    except Exception as error:  # an importer raises what it likes
        raise ImportFailed(last_line(error)) from error


class MXNetImporter(MXNet):
    """``mxnet.contrib.onnx.import_model``."""

    name = "mxnet-importer"

    def run(self, graph: Any, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        def run() -> Sequence[Any]:
            restore_mapping()
            self.mxnet  # noqa: B018  its import makes the next one work
            from mxnet.contrib.onnx.onnx2mx.import_model import import_model

            with tempfile.TemporaryDirectory() as folder:
                onnx.save(graph, f"{folder}/m.onnx")
                symbol, arguments, states = import_model(f"{folder}/m.onnx")
            return self.bind(symbol, {**arguments, **states}, feeds)

        return run_importer(run)


class RelayImporter(Relay):
    """``tvm.relay.frontend.from_onnx``."""

    name = "relay-importer"

    def run(self, graph: Any, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/m.onnx"
            onnx.save(graph, path)
            return run_importer(lambda: self.ask(folder, feeds, "run_onnx", path, onnx.__path__[0]))


class RelaxImporter(Relax):
    """``tvm.relax.frontend.onnx.from_onnx``, of the models as they are."""

    name = "relax-importer"

    def run(self, graph: Any, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        return run_importer(lambda: self.run_model(graph, feeds))
