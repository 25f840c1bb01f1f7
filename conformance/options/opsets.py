"""Opsets there and back: the same numbers, and the names of inputs and outputs stay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx

import serde

from .cells import differ, run, run_optimized, write
from .models import Model

OPSETS = (7, 9, 11, 13, 15, 18, 21, 23)
BACK = 21


def list_names(proto: onnx.ModelProto) -> tuple[list[str], list[str]]:
    """Names of the inputs that are no weights, and of the outputs."""
    constants = {t.name for t in proto.graph.initializer}
    inputs = [i.name for i in proto.graph.input if i.name not in constants]
    return inputs, [o.name for o in proto.graph.output]


def go_and_return(opset: int, model: Model, folder: Path) -> str | None:
    """Write at an opset, and at another what was written."""
    path, there, back = write(model, folder), folder / "there.onnx", folder / "back.onnx"
    expected = run(model.proto, model.feeds)
    serde.convert(path, there, opset=opset)
    serde.convert(there, back, opset=BACK)
    for target in (there, back):
        proto = onnx.load(target)
        onnx.checker.check_model(proto, full_check=True)
        if list_names(proto) != list_names(model.proto):
            return f"names became {list_names(proto)}"
        if failure := differ(run_optimized(target, model.feeds), expected):
            return f"{target.stem}: {failure}"
    return None


PROPERTIES: dict[str, Callable[[Model, Path], str | None]] = {
    str(opset): partial(go_and_return, opset) for opset in OPSETS
}
