"""``compare`` and ``verify``: right models pass, and wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import serde
from serde.verification import Verification, verify
from serde.verification.compare_models import compare_models

from ..matrix import NotRun
from .cells import differ, run, write
from .models import Model
from .precision import has_floats


def compare_equal(model: Model, folder: Path) -> str | None:
    """A model and what it is converted to."""
    path, target = write(model, folder), folder / "other.onnx"
    serde.convert(path, target, opset=21)
    verdict = compare_models(path, target)
    return None if verdict.done and verdict.ok else f"said to differ: {verdict.statement}"


def compare_types(model: Model, folder: Path) -> str | None:
    """A model and the same with inputs and outputs in float16."""
    if not has_floats(model.proto):
        raise NotRun("it has no numbers of float32")
    path, target = write(model, folder), folder / "other.onnx"
    serde.convert(path, target, fp16=True, fp16_io=True)
    verdict = compare_models(path, target)
    return None if verdict.done and verdict.ok else f"said to differ: {verdict.statement}"


def change_weight(model: Model, path: Path) -> None:
    """Write the model with its largest weight of floats a quarter larger, where that shows."""
    proto = onnx.ModelProto.FromString(model.proto.SerializeToString())
    floats = [t for t in proto.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    for tensor in sorted(floats, key=lambda t: -np.prod(t.dims)):
        saved = tensor.SerializeToString()
        array = numpy_helper.to_array(tensor)
        changed = array * np.linspace(0.75, 1.25, array.size, dtype="f").reshape(array.shape)
        tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
        if changes(proto, model):
            onnx.save(proto, path)
            return
        tensor.ParseFromString(saved)
    raise NotRun("no weight changes its outputs")


def changes(proto: onnx.ModelProto, model: Model) -> bool:
    """Whether a changed model runs, and computes other numbers."""
    try:
        outputs = run(proto, model.feeds)
    except Exception:  # of scales that Resize does not take, say
        return False
    return differ(outputs, run(model.proto, model.feeds), 1e-2) is not None


def describe_pass(verdict: Verification) -> str | None:
    """How the verdict on two models that differ fails; None where it tells that they do."""
    if not verdict.done:
        return f"not compared: {verdict.statement}"
    return "said to be equal" if verdict.ok else None


def compare_changed(model: Model, folder: Path) -> str | None:
    """A model and the same with other weights."""
    path, target = write(model, folder), folder / "other.onnx"
    change_weight(model, target)
    verdict = compare_models(path, target, data=dict(model.feeds))
    return describe_pass(verdict)


def verify_changed(model: Model, folder: Path) -> str | None:
    """A conversion whose weights were changed behind it."""
    path, target = write(model, folder), folder / "other.onnx"
    change_weight(model, folder / "changed.onnx")
    serde.convert(folder / "changed.onnx", target)
    verdict = verify(path, target, data=dict(model.feeds))
    return describe_pass(verdict)


def verify_scaled(model: Model, folder: Path) -> str | None:
    """A result whose first output is three times the source's."""
    path, target = write(model, folder), folder / "other.onnx"
    proto = onnx.ModelProto.FromString(model.proto.SerializeToString())
    kind = proto.graph.output[0].type.tensor_type.elem_type
    if kind != onnx.TensorProto.FLOAT:
        raise NotRun("its first output is not of floats")
    name = proto.graph.output[0].name
    for node in proto.graph.node:
        node.output[:] = ["unshifted" if n == name else n for n in node.output]
        node.input[:] = ["unshifted" if n == name else n for n in node.input]
    proto.graph.initializer.append(numpy_helper.from_array(np.float32(3), "by"))
    proto.graph.node.append(helper.make_node("Mul", ["unshifted", "by"], [name]))
    onnx.save(proto, target)
    try:
        run(proto, model.feeds)
    except Exception as error:
        raise NotRun(f"ONNX Runtime has no Mul of its opset: {error}") from None
    verdict = verify(path, target, data=dict(model.feeds))
    is_zero = not np.any(run(model.proto, model.feeds)[0])
    return "said to be equal" if verdict.ok and not is_zero else None


PROPERTIES: dict[str, Callable[[Model, Path], str | None]] = {
    "compare, equal": compare_equal,
    "compare, types of inputs": compare_types,
    "compare, other weights": compare_changed,
    "verify, other weights": verify_changed,
    "verify, other scale": verify_scaled,
}
