"""``--dequantize`` of what ONNX Runtime's own quantizer writes, in each of its forms."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde

from ..matrix import NotRun
from .cells import differ, run, run_optimized, write
from .models import Model

BOUND = 0.25  # of scale: an int8 network of random weights against its floats
STEP, TIES = 1e-2, 0.05  # of the scale, and the share of numbers
LARGEST = 5_000_000  # bytes of a model that is quantized here
INTEGER = ("QLinear", "Integer", "DynamicQuantize", "DequantizeLinear", "QuantizeLinear")


def quantize(form: str, model: Model, folder: Path) -> Path:
    """The file that ONNX Runtime's quantizer makes of a model."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_dynamic,
        quantize_static,
    )

    if model.proto.ByteSize() > LARGEST:
        raise NotRun("it is large")
    path, target = write(model, folder), folder / "quantized.onnx"
    logging.getLogger().setLevel(logging.ERROR)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        """The inputs of the model, once."""

        def __init__(self) -> None:
            self.batches = iter([dict(model.feeds)])

        def get_next(self) -> Any:
            return next(self.batches, None)

    try:
        if form == "dynamic":
            quantize_dynamic(path, target, weight_type=QuantType.QUInt8)
        else:
            kind, _, weights = form.partition(" ")
            quantize_static(
                path, target, Reader(), quant_format=QuantFormat[kind],
                per_channel=weights == "channels", weight_type=QuantType.QInt8,
            )  # fmt: skip
    except Exception as error:  # of what the quantizer does not take
        raise NotRun(f"ONNX Runtime does not quantize it: {error}") from None
    if not any(list_integer_nodes(onnx.load(target).graph)):
        raise NotRun("nothing of it is quantized")
    return target


def run_quantized(path: Path, model: Model) -> list[Any]:
    """What ONNX Runtime computes of a file that its quantizer wrote."""
    try:
        return run(path, model.feeds)
    except Exception as error:
        raise NotRun(f"ONNX Runtime does not run what it quantized: {error}") from None


def dequantize(form: str, model: Model, folder: Path) -> str | None:
    """Floats again: no node of integers is left, and numbers are near those of the floats."""
    path, target = quantize(form, model, folder), folder / "floats.onnx"
    integers = run_quantized(path, model)
    report = serde.convert(path, target, dequantize=True, verify=True)
    proto = onnx.load(target)
    if left := sorted(set(list_integer_nodes(proto.graph))):
        is_told = any("dequantize" in note for note in report.notes)
        return None if is_told else f"silent: {', '.join(left)} stay"
    if report.verification.done and not report.verification.ok:
        return "verification fails on a right model"
    floats = run(model.proto, model.feeds)
    if (failure := differ(run_optimized(target, model.feeds), floats, BOUND)) is None:
        return None
    if differ(integers, floats, BOUND):  # a Relu that it left out, or scales of a random network
        raise NotRun("what ONNX Runtime quantized is far from the floats")
    return failure


def convert(form: str, model: Model, folder: Path) -> str | None:
    """Quantized as it is: the same integers."""
    path, target = quantize(form, model, folder), folder / "again.onnx"
    expected = run_quantized(path, model)
    serde.convert(path, target)
    got = run(target, model.feeds)
    failure = differ(got, expected, 2e-3)
    return None if failure and is_tied(got, expected) else failure


def is_tied(got: list[Any], expected: list[Any]) -> bool:
    """Whether few numbers are off by a step: those that lie half-way but for the last digit."""
    rounded = [np.abs(a - b) > 2e-3 * np.abs(b).max() for a, b in zip(got, expected, strict=True)
               if np.asarray(b).dtype.kind == "f"]  # fmt: skip
    return differ(got, expected, STEP) is None and all(np.mean(r) < TIES for r in rounded)


def list_integer_nodes(graph: onnx.GraphProto) -> Iterator[str]:
    """The operators of nodes that compute in, from or to quantized integers."""
    for node in graph.node:
        if any(word in node.op_type for word in INTEGER):
            yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from list_integer_nodes(attribute.g)


FORMS = ("QDQ", "QDQ channels", "QOperator", "dynamic")
PROPERTIES: dict[str, Callable[[Model, Path], str | None]] = {
    **{f"{form}, --dequantize": partial(dequantize, form) for form in FORMS},
    **{form: partial(convert, form) for form in FORMS},
}
