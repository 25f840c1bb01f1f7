"""What goes into a part and comes out of it, compared with what the manifest says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serde.errors import SerdeError, UsageError
from serde.ir.graph import DType

from .manifest import PartInfo, TensorInfo


def check_values(part: PartInfo, infos: Sequence[TensorInfo], values: Sequence[Any]) -> None:
    """Refuse arrays of other types or shapes than the manifest has.

    Raises:
        SerdeError: with the part, the value, and what it is to be.
    """
    for info, value in zip(infos, values, strict=True):
        if info.container or not info.dtype:
            continue
        reason = _find_difference(info, value)
        if reason is not None:
            raise SerdeError(f"part {part.name!r}: {info.name!r} {reason}")


def check_inputs(infos: Sequence[TensorInfo], feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a model by name; lists and numbers as arrays of their types.

    Raises:
        UsageError: for an input that is missing, or of another type or shape.
    """
    values: dict[str, Any] = {}
    for info in infos:
        if info.name not in feeds:
            raise UsageError(f"the input {info.name!r} is missing: give an array for it")
        value = feeds[info.name]
        if info.container or not info.dtype:
            values[info.name] = value
            continue
        if isinstance(value, (list, tuple, int, float)):
            value = np.asarray(value, DType(info.dtype).numpy)
        array = value.numpy() if hasattr(value, "numpy") else value  # of a runtime
        if reason := _find_difference(info, array):
            raise UsageError(f"the input {info.name!r} {reason}")
        values[info.name] = value
    return values


def _find_difference(info: TensorInfo, value: Any) -> str | None:
    if not isinstance(value, np.ndarray) and not np.isscalar(value):
        return f"is a {type(value).__name__}. Give an array"
    array = np.asarray(value)
    expected = DType(info.dtype).numpy
    is_text = expected.kind == "O" and array.dtype.kind in "OUS"
    if array.dtype != expected and not is_text:
        return f"is of {array.dtype}. Make it {info.dtype}"
    if info.shape is None:
        return None
    fits = array.ndim == len(info.shape) and all(
        not isinstance(d, int) or d == n for d, n in zip(info.shape, array.shape, strict=True)
    )
    shown = ", ".join("?" if d is None else str(d) for d in info.shape)
    return None if fits else f"has the shape {list(array.shape)}. Make it [{shown}]"


def check_finite(what: str, results: Mapping[str, Any], explain: Callable[[], str] = str) -> None:
    """Refuse results, arrays or lists of them by name, with infinities or NaN.

    ``explain`` tells where they arise, if that is known.

    Raises:
        SerdeError: with what computed them, the value, and how many there are.
    """
    for name, result in results.items():
        for array in map(np.asarray, result if isinstance(result, (list, tuple)) else [result]):
            if DType.of(array.dtype).kind != "f":
                continue
            count = int((~np.isfinite(array.astype(np.float64))).sum())
            if count:
                reason = explain()
                raise SerdeError(
                    f"{what}: {count} of the {array.size} elements of its result {name!r} are not "
                    f"finite{': ' if reason else ''}{reason}"
                )
