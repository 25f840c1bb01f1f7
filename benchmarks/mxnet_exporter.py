"""MXNet 1.9.1's own ONNX exporter on today's onnx: the names it needs are put back.

``python -m benchmarks.mxnet_exporter PREFIX TARGET SHAPE`` exports a model that way.
"""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType

import numpy as np
import onnx
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
    imports = [onnx.helper.make_opsetid("", OPSET)]
    onnx.helper.make_model = partial(
        onnx.helper.make_model, opset_imports=imports, ir_version=IR_VERSION
    )


def export(prefix: str, target: str, shape: tuple[int, ...]) -> None:
    """Export ``PREFIX-symbol.json`` and ``PREFIX-0000.params`` with MXNet."""
    mxnet = import_mxnet()
    import mxnet.onnx  # noqa: F811

    mend()
    files = (f"{prefix}-symbol.json", f"{prefix}-0000.params")
    mxnet.onnx.export_model(*files, [shape], np.float32, target)


if __name__ == "__main__":
    export(sys.argv[1], sys.argv[2], tuple(map(int, sys.argv[3].split(","))))
