"""Write ``tests/data/params/*.params`` with live MXNet: ``python -m tests.mxnet.make_data``.

They stand for MXNet where it cannot be installed; test_params.py reads them, and where it can be
compares them with what MXNet writes now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from testing.mxnet_live import live_mxnet

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parents[1] / "data" / "params"
TYPES = "float32 float64 float16 uint8 int32 int8 int64 bool".split()
VALUES = np.array([[0, 1, 2], [3, 0, 100]])
DENSE = {t: VALUES.astype(t) for t in TYPES}
SPARSE = np.array([[0, 0], [1, 2], [0, 0], [3, 0]], "float32")


def _dense(path: str, arrays: Any) -> None:
    mx = live_mxnet()

    def live(array: Array) -> Any:
        return mx.nd.array(array, dtype=array.dtype) if array.size else mx.nd.zeros(array.shape)

    if isinstance(arrays, Mapping):
        mx.nd.save(path, {n: live(a) for n, a in arrays.items()})
    else:
        mx.nd.save(path, [live(a) for a in arrays])


def _numpy_shapes(path: str, arrays: Mapping[str, Array]) -> None:
    with live_mxnet().util.np_shape(True):
        _dense(path, arrays)


def _sparse(path: str, arrays: Mapping[str, Array]) -> None:
    mx = live_mxnet()
    held = {n: mx.nd.array(a).tostype(n.partition("-")[0]) for n, a in arrays.items()}
    mx.nd.waitall()  # saved at once, a sparse array's shape may be that of none
    mx.nd.save(path, held)


def _half(path: str, arrays: Mapping[str, Array]) -> None:
    mx = live_mxnet()
    kind = np.dtype([("bfloat16", np.uint16)])
    mx.nd.save(path, {n: mx.nd.array(a).astype(kind) for n, a in arrays.items()})


# Files: what is in them, and who writes it.
FILES: dict[str, tuple[Any, Callable[..., None]]] = {
    "named": ({f"arg:{n}": a for n, a in DENSE.items()} | {"aux:mean": SPARSE}, _dense),
    "unnamed": ([SPARSE, VALUES.astype("int8")], _dense),
    "numpy-shapes": (
        {**DENSE, "scalar": np.float32(3), "empty": np.zeros((0, 3), "float32")}, _numpy_shapes,
    ),
    "sparse": (
        {f"{kind}-{n}": a for kind in ("row_sparse", "csr")
         for n, a in (("some", SPARSE), ("none", SPARSE * 0))}, _sparse,
    ),
    "bfloat16": ({"half": SPARSE - 1.5}, _half),
}  # fmt: skip


def write(folder: Path) -> None:
    """Write every file into ``folder``."""
    for name, (arrays, save) in FILES.items():
        save(str(folder / f"{name}.params"), arrays)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    write(FOLDER)
