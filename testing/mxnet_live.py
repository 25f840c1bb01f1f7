"""Run symbols and single operators in the real MXNet, for tests to compare with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from serde.bridges.numpy_compat import import_mxnet

MXNET_VERSION = 10901
Names = Sequence[str]


@cache
def _mxnet_or_reason() -> ModuleType | str:
    os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
    if os.environ.get("SERDE_WITHOUT_LIVE"):
        return "no live MXNet: SERDE_WITHOUT_LIVE is set"
    try:
        return import_mxnet()
    except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: no libmxnet.so
        return f"no live MXNet: {type(error).__name__}: {error}"


def live_mxnet() -> ModuleType:
    """The ``mxnet`` module; skips the running test, with the reason, where it does not import."""
    module = _mxnet_or_reason()
    if isinstance(module, str):
        pytest.skip(module)
    return module


def run_symbol(
    symbol_json: str,
    params: Mapping[str, np.ndarray],
    feeds: Mapping[str, np.ndarray],
    *,
    np_shape: bool = False,
    train: bool = False,
) -> list[np.ndarray]:
    """The outputs of a symbol in inference mode; shapes and types are those of the arrays.

    ``params`` holds arguments and auxiliary states under their plain names and may hold more
    than the symbol uses. ``np_shape`` admits shapes of rank and size zero, ``train`` switches
    to training mode. Raises KeyError for an input nobody gave and a feed the symbol lacks.
    """
    mx = live_mxnet()
    values = {**params, **feeds}
    with _shapes(np_shape):
        symbol = mx.sym.load_json(symbol_json)
        names = symbol.list_inputs()
        unknown, missing = set(feeds) - set(names), set(names) - set(values)
        if unknown or missing:
            raise KeyError(f"not inputs: {sorted(unknown)}; not given: {sorted(missing)}")
        arrays = {n: _to_mxnet(values[n]) for n in names}
        try:
            if not names:
                raise mx.MXNetError
            run = mx.nd.CachedOp(symbol)
        except mx.MXNetError:  # it needs an input and gradients; an executor needs known shapes
            states = {n: arrays.pop(n) for n in symbol.list_auxiliary_states()}
            bound = symbol.bind(mx.cpu(), arrays, grad_req="null", aux_states=states)
            return [y.asnumpy() for y in bound.forward(is_train=train)]
        with mx.autograd.train_mode() if train else mx.autograd.predict_mode():
            result = run(*arrays.values())
        return [y.asnumpy() for y in (result if isinstance(result, list) else [result])]


def symbol_of(
    op: str,
    inputs: int | Names,
    attrs: Mapping[str, Any] | None = None,
    *,
    outputs: int | None = None,
    name: str = "op",
    np_shape: bool = False,
) -> str:
    """The JSON of a symbol that is one node of ``op``, which may be any registered operator.

    ``inputs`` names the inputs or counts them (``x0, x1, …``). The heads are the first
    ``outputs`` outputs, by default all the visible ones. Attribute values are written with
    ``str()``; an operator with a variable number of inputs needs its ``num_args``.
    """
    names = [f"x{i}" for i in range(inputs)] if isinstance(inputs, int) else list(inputs)
    if outputs is None:
        outputs = _visible_outputs(op, names, attrs, np_shape)
    node = {"op": op, "name": name, "inputs": [[i, 0, 0] for i in range(len(names))]}
    if attrs:
        node["attrs"] = {key: str(value) for key, value in attrs.items()}
    graph = {
        "nodes": [*({"op": "null", "name": n, "inputs": []} for n in names), node],
        "arg_nodes": list(range(len(names))),
        "heads": [[len(names), i, 0] for i in range(outputs)],
        "attrs": {"mxnet_version": ["int", MXNET_VERSION]},
    }
    with _shapes(np_shape):
        return live_mxnet().sym.load_json(json.dumps(graph)).tojson()


def run_op(
    op: str,
    inputs: Sequence[np.ndarray],
    attrs: Mapping[str, Any] | None = None,
    outputs: int | None = None,
    *,
    names: Names | None = None,
    np_shape: bool = False,
    train: bool = False,
) -> tuple[str, list[np.ndarray]]:
    """The symbol JSON of one operator (see ``symbol_of``) and what MXNet computes with it."""
    names = [f"x{i}" for i in range(len(inputs))] if names is None else names
    text = symbol_of(op, names, attrs, outputs=outputs, np_shape=np_shape)
    feeds = dict(zip(names, inputs, strict=True))
    return text, run_symbol(text, {}, feeds, np_shape=np_shape, train=train)


def registered_ops() -> list[str]:
    """Every operator name the MXNet library knows, internal and backward ones too."""
    import ctypes

    base = live_mxnet().base
    size, array = ctypes.c_uint(), ctypes.POINTER(ctypes.c_char_p)()
    base.check_call(base._LIB.MXListAllOpNames(ctypes.byref(size), ctypes.byref(array)))
    return sorted(array[i].decode() for i in range(size.value))


def _visible_outputs(op: str, names: Names, attrs: Mapping[str, Any] | None, np_shape: bool) -> int:
    one = symbol_of(op, names, attrs, outputs=1, np_shape=np_shape)
    with _shapes(np_shape):  # the internals are the variables, then the node's visible outputs
        internals = live_mxnet().sym.load_json(one).get_internals()
        return len(internals.list_outputs()) - len(internals.list_inputs())


def _shapes(np_shape: bool) -> AbstractContextManager[Any]:
    return live_mxnet().util.np_shape(np_shape)


def _to_mxnet(array: np.ndarray) -> Any:
    array = np.asarray(array)
    return live_mxnet().nd.array(array, dtype=array.dtype)
