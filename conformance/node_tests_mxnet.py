"""MXNet 1.9.1 as a target of the node tests, and its own importer ``mxnet.contrib.onnx``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx

import serde
from conformance.mxnet_exporter import restore_mapping
from serde.bridges.mxnet import import_mxnet
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy

from .node_target import NotRun, Target

# What MXNet itself cannot do on a processor, as it says so.
OWN = (
    "FP16 gemm on cpu not implemented",
    "If not using CUDNN, only 1D or 2D Deconvolution is supported",  # before 1.9
    "Dilate is not supported in 3d convolution",  # before 1.7
)


class MXNet(Target):
    """Models as symbols and parameters, bound and run."""

    name = "mxnet"
    title = "MXNet 1.9.1"
    importer = "`mxnet.contrib.onnx.import_model`"
    notes = (
        "MXNet's tensors have at least one axis: one of shape `(1,)` counts as right where ONNX "
        "has one of no axes, in both columns."
    )

    def __init__(self) -> None:
        os.environ["MXNET_SUBGRAPH_VERBOSE"] = "0"
        self.mxnet = import_mxnet()

    def ours(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m-symbol.json"
            graph = tidy(raise_to_ir(decode(model)))
            serde.save(graph, path, mxnet=self.mxnet.__version__)
            symbol = self.mxnet.sym.load(str(path))
            arrays = dict(self.mxnet.nd.load(str(path.with_name("m-0000.params"))))
        return self.run(symbol, {n.partition(":")[2]: a for n, a in arrays.items()}, feeds)

    def theirs(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        restore_mapping()
        from mxnet.contrib.onnx.onnx2mx.import_model import import_model

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            onnx.save(model, path)
            symbol, arguments, states = import_model(str(path))
        return self.run(symbol, {**arguments, **states}, feeds)

    def run(self, symbol: Any, arrays: dict[str, Any], feeds: dict[str, Any]) -> Sequence[Any]:
        """Bind as any program does, and run in inference mode."""
        mx: ModuleType = self.mxnet
        given = {n: mx.nd.array(np.atleast_1d(a), dtype=a.dtype) for n, a in feeds.items()}
        given = {**arrays, **given}
        held = {n: given[n] for n in symbol.list_arguments()}
        states = {n: given[n] for n in symbol.list_auxiliary_states()}
        try:
            bound = symbol.bind(mx.cpu(), held, grad_req="null", aux_states=states)
            return [y.asnumpy() for y in bound.forward(is_train=False)]
        except mx.MXNetError as error:
            if reason := next((r for r in OWN if r in str(error)), None):
                raise NotRun(reason) from error
            raise

    def comparable(self, wanted: Any, got: Any) -> Any:
        """``(1,)`` where ONNX has no axes."""
        none = getattr(wanted, "shape", None) == () and got.shape == (1,)
        return got.reshape(()) if none else got
