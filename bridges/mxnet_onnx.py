"""The functions of ``mxnet.onnx`` and ``mxnet.contrib.onnx`` beside ``export_model``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from serde.ir.graph import Value


def import_model(model_file: str | os.PathLike[str]) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Read an ONNX file, as ``mxnet.contrib.onnx.import_model``: symbol, arguments and states.

    Raises:
        SerdeError: one of its kinds; MissingDependency where MXNet does not import.
    """
    from serde.api.live_objects import import_

    symbol, params = import_(model_file, "onnx", to="mxnet")
    kinds: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
    for name, array in params.items():
        kind, _, plain = name.partition(":")
        kinds[kind][plain] = array
    return symbol, kinds["arg"], kinds["aux"]


def get_model_metadata(model_file: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """The names and shapes of a model's inputs and outputs, as MXNet's function returns them.

    ``input_tensor_data`` and ``output_tensor_data`` are lists of ``(name, shape)``; as there, a
    size that is not fixed is 0. MXNet is not needed.
    """
    from serde.api import read

    graph, _ = read(model_file, from_format="onnx")
    return {
        "input_tensor_data": [_describe(v) for v in graph.inputs],
        "output_tensor_data": [_describe(v) for v in graph.outputs],
    }


def _describe(value: Value) -> tuple[str, tuple[int, ...]]:
    return value.name, tuple(d if isinstance(d, int) else 0 for d in value.shape or ())


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """The operators of MXNet that can be exported, which do not depend on the opset."""
    from serde.plugins import get_format

    (table, *_) = get_format("mxnet").rule_tables()
    return sorted(table.rules)


def replace_functions(mxnet: ModuleType, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Put ``functions`` in the place of those of the same names, where scripts look for them.

    ``mxnet.contrib.onnx.mx2onnx`` is where releases before 1.9 had ``export_model``.
    """
    contrib = import_module("mxnet.contrib.onnx")
    exporting = {n: functions[n] for n in ("export_model", "get_operator_support")}
    vars(mxnet.onnx).update(exporting)
    vars(mxnet.onnx.mx2onnx).update(exporting)
    vars(contrib).update(functions)
    importers = contrib.onnx2mx
    for module, name in (
        (importers.import_model, "import_model"), (importers.import_model, "get_model_metadata"),
        (importers.import_to_gluon, "import_to_gluon"),
    ):  # fmt: skip
        setattr(module, name, functions[name])
    old = ModuleType("mxnet.contrib.onnx.mx2onnx")
    inner = ModuleType("mxnet.contrib.onnx.mx2onnx.export_model")
    vars(inner).update(exporting)
    vars(old).update(exporting, export_model=inner)
    contrib.mx2onnx = old  # type: ignore[attr-defined]
    sys.modules.update({old.__name__: old, inner.__name__: inner})
