"""Answers questions about a release of MXNet; runs in an environment of ``releases_live.py``.

It is written for Python 3.7 and for MXNet 0.9.5 to 2.0.
"""

import ctypes
import json
import os
import signal
import sys
from contextlib import contextmanager
from importlib import import_module

os.environ.setdefault("MXNET_SUBGRAPH_VERBOSE", "0")
import mxnet as mx
import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from testing.serving import serve

OPERANDS = ("NDArray-or-Symbol", "NDArray", "Symbol", "Symbol or Symbol[]")
# Operators of whose results an executor does not infer the shapes.
FINDS_SHAPES = frozenset(
    "_contrib_boolean_mask _npi_bincount _npi_unique _npx_nonzero _while_loop".split()
)
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
    entries = {}
    for name in op_names():
        if "backward" in name or name == "_grad_add":
            continue
        canonical, entry = describe(name)
        entry = entries.setdefault(canonical, entry)
        if name != canonical:
            entry.setdefault("aliases", []).append(name)
    return entries


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
def limit(seconds):
    """End the process after a time: some symbols hang, where a later release raises an error."""
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


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
    with np.load(inputs) as read:
        feeds = {name: read[name] for name in read.files}
    with limit(SECONDS), shapes(is_numpy):
        symbol = parse(text)
        arrays = {n: to_mxnet(feeds[n]) for n in listed_inputs(symbol)}
        np.savez(outputs, *[to_numpy(y) for y in forward(symbol, arrays)])


def run_files(files, inputs, outputs):
    """Run a model, given as the paths of its symbol and parameters, on arrays by name."""
    with np.load(inputs) as read:
        feeds = {n: np.atleast_1d(read[n]) for n in read.files}
    is_second = hasattr(mx.sym.Symbol, "_bind")
    with limit(6 * SECONDS):
        results = (import_block if is_second else bind_files)(files, feeds)
        np.savez(outputs, *[to_numpy(y) for y in results])


def bind_files(files, feeds):
    """The outputs of a model that is loaded as every program did up to MXNet 1.9."""
    symbol = mx.sym.load(files[0])
    held = mx.nd.load(files[1])
    arrays = {n.partition(":")[2]: a for n, a in held.items()} if held else {}
    arrays.update((n, to_mxnet(x)) for n, x in feeds.items())
    return forward(symbol, {n: arrays[n] for n in listed_inputs(symbol)})


def import_block(files, feeds):
    """The outputs of a model that is loaded as programs of MXNet 2.0 do."""
    read = mx.np_symbol if mx.util.is_np_array() else mx.sym
    names = [n for n in listed_inputs(read.load(files[0])) if n in feeds]
    if not names:
        return bind_files(files, feeds)
    block = mx.gluon.SymbolBlock.imports(files[0], names, files[1])
    outputs = block(*[mx.np.array(feeds[n], dtype=feeds[n].dtype) for n in names])
    return outputs if isinstance(outputs, (list, tuple)) else [outputs]


def nodes_of(symbol):
    return json.loads(symbol.tojson())["nodes"]


def parse(text):
    """A symbol of its JSON."""
    return (mx.sym.fromjson if hasattr(mx.sym, "fromjson") else mx.sym.load_json)(text)


def listed_inputs(symbol):
    return symbol.list_arguments() + symbol.list_auxiliary_states()


def forward(symbol, arrays):
    """The outputs in inference mode; by an executor where it knows the shapes."""
    is_second = hasattr(symbol, "_bind")
    if (is_second or FINDS_SHAPES.intersection(n["op"] for n in nodes_of(symbol))) and arrays:
        try:
            op = mx.nd.CachedOp(symbol)
        except mx.MXNetError:  # it needs gradients
            op = None
        if op is not None:
            more = {"default_ctx": mx.cpu()} if is_second else {}
            result = op(*[arrays[n] for n in symbol.list_inputs()], **more)
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


COMMANDS = {
    f.__name__: f for f in (version, op_names, registry, run, run_files, visible, load, call)
}


def message(error):
    """What an error says, without where in the library it came from."""
    lines = [line.strip() for line in str(error).partition("Stack trace")[0].splitlines()]
    text = " ".join(line for line in lines if line and "[bt]" not in line and "C++" not in line)
    return f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    serve(version(), COMMANDS, message)
