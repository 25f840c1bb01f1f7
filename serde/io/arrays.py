"""Parameters that callers hold in memory, as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from serde.errors import ConversionError, UsageError
from serde.ir.graph import DType, Tensor


def to_tensors(params: Any) -> dict[str, Tensor]:
    """The tensors of a mapping of names to arrays, or of several such mappings in a sequence.

    Arrays are NumPy's, or those of a framework with ``asnumpy()`` or ``numpy()``.

    Raises:
        UsageError: where it is no mapping, or an entry no array of an element type of the IR.
    """
    parts = params if isinstance(params, (tuple, list)) else [params]
    result: dict[str, Tensor] = {}
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, Mapping):
            raise UsageError(
                "params are the path of a file, or a mapping of names to arrays, "
                f"not {type(part).__name__}"
            )
        result.update((str(name), _to_tensor(name, array)) for name, array in part.items())
    return result


def _to_tensor(name: Any, array: Any) -> Tensor:
    if getattr(array, "stype", "default") != "default":  # MXNet's sparse arrays
        array = array.tostype("default")
    for method in ("asnumpy", "numpy"):
        if hasattr(array, method):
            array = getattr(array, method)()
            break
    plain = np.asarray(array)
    try:
        is_refused = DType.of(plain.dtype) is DType.STRING
    except ConversionError:
        is_refused = True
    if is_refused:
        raise UsageError(f"params: {name!r} is no array of numbers: its type is {plain.dtype}")
    return Tensor.of(plain.astype(plain.dtype.newbyteorder("="), copy=False))
