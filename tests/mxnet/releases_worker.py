"""Answers questions about a release of MXNet; runs in an environment of ``releases_live.py``.

It is written for Python 3.7 and for MXNet 0.9.5 to 2.0.
"""

import ctypes
import os
import signal
import sys
from contextlib import contextmanager
from importlib import import_module

os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
import mxnet as mx
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from tests.serving import serve

OPERANDS = ("NDArray-or-Symbol", "NDArray", "Symbol", "Symbol or Symbol[]")
SECONDS = 20  # that a symbol may take
Strings = ctypes.POINTER(ctypes.c_char_p)


def version():
    return mx.libinfo.__version__


def op_names():
    """Every operator name the library knows."""
    size, array = ctypes.c_uint(), Strings()
    mx.base.check_call(mx.base._LIB.MXListAllOpNames(ctypes.byref(size), ctypes.byref(array)))
    return sorted(array[i].decode() for i in range(size.value))


def registry():
    """Forward operators by the name they are saved under; as in ``make_registry.py``."""
    found = {}
    for name in op_names():
        if "backward" in name or name == "_grad_add":
            continue
        canonical, entry = describe(name)
        entry = found.setdefault(canonical, entry)
        if name != canonical:
            entry.setdefault("aliases", []).append(name)
    return found


def describe(name):
    """The first name of an operator, and its operands and attributes."""
    base = mx.base
    handle, count = ctypes.c_void_p(), ctypes.c_uint()
    real, text, variadic, returned = (ctypes.c_char_p() for _ in range(4))
    names, types, notes = Strings(), Strings(), Strings()
    base.check_call(base._LIB.NNGetOpHandle(name.encode(), ctypes.byref(handle)))
    outputs = (real, text, count, names, types, notes, variadic, returned)
    info = base._LIB.MXSymbolGetAtomicSymbolInfo
    base.check_call(info(handle, *map(ctypes.byref, outputs)))
    listed = [(names[i].decode(), types[i].decode()) for i in range(count.value)]
    operands = [n for n, t in listed if (t[:-2] if t.endswith("[]") else t) in OPERANDS]
    operands += [n for n, t in listed if t in OPERANDS and n not in operands]
    entry = {"operands": operands}
    if variadic.value or any(t.endswith("[]") for n, t in listed if n in operands):
        entry["variadic"] = True
    entry["attributes"] = {n: t for n, t in listed if n not in operands}
    return real.value.decode(), {k: v for k, v in entry.items() if v}


@contextmanager
def shapes(is_numpy):
    """Whether a size may be 0, where the release can tell."""
    if not is_numpy:
        yield
    elif hasattr(mx.util, "np_shape"):
        with mx.util.np_shape(True):
            yield
    else:
        raise ValueError("no shapes of NumPy")


def run(what, inputs, outputs):
    """Run a symbol, given as its JSON and whether it has NumPy's shapes, on arrays by name."""
    text, is_numpy = what
    signal.alarm(SECONDS)  # some hang, where a later release raises an error
    with np.load(inputs) as read:
        feeds = {name: read[name] for name in read.files}
    with shapes(is_numpy):
        symbol = parse(text)
        arrays = {n: to_mxnet(feeds[n]) for n in listed_inputs(symbol)}
        np.savez(outputs, *[to_numpy(y) for y in forward(symbol, arrays)])
    signal.alarm(0)


def parse(text):
    """A symbol of its JSON."""
    return (mx.sym.fromjson if hasattr(mx.sym, "fromjson") else mx.sym.load_json)(text)


def listed_inputs(symbol):
    return symbol.list_arguments() + symbol.list_auxiliary_states()


def forward(symbol, arrays):
    """The outputs in inference mode; by an executor where it knows the shapes."""
    if hasattr(symbol, "_bind") and arrays:
        try:
            made = mx.nd.CachedOp(symbol)
        except mx.MXNetError:  # it needs gradients
            made = None
        if made is not None:
            result = made(*[arrays[n] for n in symbol.list_inputs()], default_ctx=mx.cpu())
            return result if isinstance(result, list) else [result]
    states = {n: arrays.pop(n) for n in symbol.list_auxiliary_states()}
    bind = symbol._bind if hasattr(symbol, "_bind") else symbol.bind
    bound = bind(mx.cpu(), arrays, grad_req="null", aux_states=states)
    return bound.forward(is_train=False)


def to_mxnet(array):
    """An array of MXNet; before 1.5 ``array`` knows no type of booleans, and none of scalars."""
    if array.dtype == bool and hasattr(mx, "np"):
        return mx.np.array(array, dtype=bool).as_nd_ndarray()
    return mx.nd.array(array, dtype=array.dtype)


def to_numpy(array):
    return array.asnumpy()


def visible(text, is_numpy):
    """How many outputs the last node of a symbol shows."""
    with shapes(is_numpy):
        internals = parse(text).get_internals()
        return len(internals.list_outputs()) - len(listed_inputs(internals))


def load(text):
    """The JSON of a symbol as this release saves it."""
    return parse(text).tojson()


def call(module, function, *arguments):
    """Call a function of a module of the tests that is written for this release."""
    return getattr(import_module(module), function)(*arguments)


COMMANDS = {f.__name__: f for f in (version, op_names, registry, run, visible, load, call)}


if __name__ == "__main__":
    serve(version(), COMMANDS)
