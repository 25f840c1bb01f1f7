"""MXNet 1.9.1's own ONNX exporter on today's onnx: the names it needs are put back.

``python -m conformance.mxnet_exporter PREFIX TARGET SHAPE`` exports a model that way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.defs
import onnx.helper

from serde.bridges.mxnet import import_mxnet

OPSET, IR_VERSION = 13, 7  # the newest the exporter knows, and the IR version of that time
TYPES = {
    "float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "int8": "INT8",
    "uint8": "UINT8", "int32": "INT32", "int64": "INT64", "bool": "BOOL",
}  # fmt: skip


def restore_mapping() -> None:
    """Give ``onnx`` back the tables of element types that MXNet looks up."""
    mapping = ModuleType("onnx.mapping")
    codes = {np.dtype(n): getattr(onnx.TensorProto, code) for n, code in TYPES.items()}
    vars(mapping).update(
        NP_TYPE_TO_TENSOR_TYPE=codes, TENSOR_TYPE_TO_NP_TYPE={c: t for t, c in codes.items()}
    )
    onnx.mapping = sys.modules["onnx.mapping"] = mapping


def mend() -> None:
    """Give ``onnx`` what the exporter looks up: ``onnx.mapping``, and a newest opset of 13."""
    restore_mapping()
    onnx.defs.onnx_opset_version = lambda: OPSET
    onnx.checker.DEFAULT_CONTEXT.opset_imports = {"": OPSET}
    imports = [onnx.helper.make_opsetid("", OPSET)]
    onnx.helper.make_model = partial(
        onnx.helper.make_model, opset_imports=imports, ir_version=IR_VERSION
    )


def write_raw() -> None:
    """Have ``onnx.helper.make_tensor`` write float weights at once, where no one takes the time."""
    by_number = onnx.helper.make_tensor

    def make_tensor(
        name: str, data_type: int, dims: Sequence[int], vals: Any, raw: bool = False
    ) -> onnx.TensorProto:
        if raw or data_type != onnx.TensorProto.FLOAT:
            return by_number(name, data_type, dims, vals, raw)
        return by_number(name, data_type, dims, np.asarray(vals, np.float32), raw=True)

    onnx.helper.make_tensor = make_tensor


def export(prefix: str, target: str, feeds: Mapping[str, np.ndarray]) -> None:
    """Export ``PREFIX-symbol.json`` and its parameters with MXNet, for inputs like these."""
    mxnet = import_mxnet()
    import mxnet.onnx  # noqa: F811

    mend()
    files = (f"{prefix}-symbol.json", f"{prefix}-0000.params")
    data = [feeds[n] for n in mxnet.sym.load(files[0]).list_inputs() if n in feeds]
    mxnet.onnx.export_model(*files, [x.shape for x in data], [x.dtype for x in data], target)


if __name__ == "__main__":
    shape = tuple(map(int, sys.argv[3].split(",")))
    export(sys.argv[1], sys.argv[2], {"data": np.zeros(shape, np.float32)})
