"""Let MXNet 1.9.1, written for NumPy 1.16 to 1.19, import and run on NumPy 1.26 to 2.5.

The names go onto the ``numpy`` module itself, as MXNet looks them up there, so the whole
process sees them. Names NumPy still has are left alone.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np

CONSTANTS: dict[str, float] = {
    "PZERO": 0.0,
    "NZERO": -0.0,
    "PINF": np.inf,
    "NINF": -np.inf,
    "NAN": np.nan,
    "NaN": np.nan,
    "Inf": np.inf,
    "infty": np.inf,
    "Infinity": np.inf,
}
TYPES: dict[str, type] = {"bool": bool, "float": float, "int": int, "object": object}
RENAMED = {
    "alltrue": "all",
    "sometrue": "any",
    "product": "prod",
    "cumproduct": "cumprod",
    "round_": "round",
    "row_stack": "vstack",
    "trapz": "trapezoid",
}
FINANCIAL = ["fv", "ipmt", "irr", "mirr", "nper", "npv", "pmt", "ppmt", "pv", "rate"]


def in1d(ar1: Any, ar2: Any, **options: Any) -> Any:
    """Whether each element of the flattened ``ar1`` is in ``ar2``, as NumPy once had it."""
    return np.isin(np.ravel(ar1), ar2, **options)


def msort(a: Any) -> Any:
    """A copy of ``a`` sorted along the first axis, as NumPy once had it."""
    return np.sort(a, axis=0)


def _make_refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"numpy.{name} left NumPy in 1.20; use numpy_financial.{name}")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def restore() -> None:
    """Set on ``numpy`` every name MXNet 1.9.1 looks for and the running NumPy lacks.

    The financial functions come back only as names: calling one raises NotImplementedError.
    """
    present = vars(np)  # not hasattr(): NumPy answers that with a deprecation warning
    names: dict[str, Any] = {**CONSTANTS, **TYPES, "in1d": in1d, "msort": msort}
    names |= {old: present[new] for old, new in RENAMED.items() if new in present}
    names |= {name: _make_refusal(name) for name in FINANCIAL}
    names["compat"] = SimpleNamespace(basestring=str)
    for name, value in names.items():
        if name not in present:
            setattr(np, name, value)


def _attribute_text(value: object) -> str:
    """``str(value)`` without NumPy 2's ``np.int64(4)``, which MXNet's C++ cannot parse."""
    text = str(value)
    return text if "np." not in text else str(_show_plainly(value))


class _Plain:
    """A number of NumPy that is shown within lists as it is by itself."""

    def __init__(self, value: np.generic) -> None:
        self.value = value

    def __repr__(self) -> str:
        return str(self.value)


def _show_plainly(value: Any) -> Any:
    if isinstance(value, (np.number, np.bool_)):
        return _Plain(value)
    if isinstance(value, np.str_):
        return str(value)
    if isinstance(value, dict):
        return {_show_plainly(k): _show_plainly(v) for k, v in value.items()}
    return type(value)(map(_show_plainly, value)) if type(value) in (list, tuple, set) else value


def mend_mxnet(mxnet: ModuleType) -> None:
    """Mend what MXNet looks up at use time, once it is imported."""
    for module in (mxnet._ctypes.ndarray, mxnet._ctypes.symbol, mxnet.symbol.symbol):
        vars(module)["str"] = _attribute_text  # shadows the builtin in these modules only
    core = importlib.import_module("numpy.core")
    vars(core)["numeric"] = core.numeric  # NumPy 2 warns at each lookup; moveaxis() does one
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None:  # SciPy warns too, and nd.array() looks it up for every array
        csr = vars(sparse).setdefault("csr", SimpleNamespace())
        vars(csr).setdefault("csr_matrix", sparse.csr_matrix)


def import_mxnet() -> ModuleType:
    """MXNet, imported after ``restore()``; the warnings of its own import are not shown.

    Raises whatever the import raises: ImportError, or OSError for a missing shared library.
    From Python 3.12 on MXNet needs setuptools installed, which brings ``distutils`` back.
    """
    restore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mxnet = importlib.import_module("mxnet")
        mend_mxnet(mxnet)
    return mxnet
