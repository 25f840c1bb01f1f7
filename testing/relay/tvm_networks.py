"""Networks for ``tvm_worker.py`` to write: those of relay.testing, and Gluon's by TVM's frontend.

A folder gets ``imported`` and ``fused`` modules, ``.txt`` and ``.json``, with ``net.params``, the
inputs in order, ``in.npz``, and what TVM computes of the imported one, ``out.npz``.
"""

from __future__ import annotations

import importlib
import math
import sys
import types
import zlib
from pathlib import Path

import numpy as np
import tvm
from tvm import relay

from testing.relay.tvm_running import flat

STATISTICS = ("gamma", "var")  # how names of what must be positive end
PASSES = (
    relay.transform.SimplifyInference(),
    relay.transform.FoldConstant(),
    relay.transform.EliminateCommonSubexpr(),
    relay.transform.FuseOps(3),
)


def testing(module, options, folder):
    """A network of ``tvm.relay.testing``, with weights drawn from its name."""
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    workload = importlib.import_module(f"tvm.relay.testing.{module}").get_workload
    mod, params = workload(**options)
    mod = _with_logits(mod)
    generator = np.random.default_rng(zlib.crc32(f"{module}{options}".encode()))
    drawn = {n: _draw(n, p.numpy(), generator) for n, p in params.items()}
    free = [p for p in mod["main"].params if p.name_hint not in drawn]
    _write(mod, drawn, [_input(p.checked_type, generator) for p in free], Path(folder))


def _with_logits(module):
    """What a softmax is taken of is an output too: its own result tells little of large numbers."""
    main = module["main"]
    if isinstance(main.body, relay.Call) and getattr(main.body.op, "name", "") == "nn.softmax":
        body = relay.Tuple([main.body, main.body.args[0]])
        module["main"] = relay.Function(main.params, body)
    return module


def _draw(name, like, generator):
    if name.endswith(STATISTICS):
        return generator.uniform(0.5, 1.5, like.shape).astype(like.dtype)
    if like.ndim < 2:
        return generator.normal(0, 0.1, like.shape).astype(like.dtype)
    size = math.sqrt(1 / math.prod(like.shape[1:]))
    return (generator.standard_normal(like.shape) * size).astype(like.dtype)


def _input(type_, generator):
    shape = [int(d) for d in type_.shape]
    return generator.standard_normal(shape).astype(type_.dtype)


class Symbol:
    """What TVM's frontend asks of an MXNet symbol."""

    def __init__(self, path):
        self.path = path

    def tojson(self):
        return Path(self.path).read_text()


class Array:
    """What it asks of an MXNet array."""

    def __init__(self, array):
        self.array = array

    def asnumpy(self):
        return self.array


def _anything(*args, **options):
    """An operator that takes every attribute: the frontend tries one."""


def _stand_in():
    """A module in MXNet's place: the frontend only asks whether a symbol is one."""
    module = types.ModuleType("mxnet")
    module.sym = types.SimpleNamespace(Symbol=Symbol, FullyConnected=_anything, var=_anything)
    module.base = types.SimpleNamespace(MXNetError=OSError)
    return module


def gluon(symbol, weights, inputs, folder, computes):
    """A network MXNet exported; ``weights`` and ``inputs`` are archives of NumPy's."""
    sys.modules.setdefault("mxnet", _stand_in())
    with np.load(weights) as held, np.load(inputs) as arrays:
        feeds, params = dict(arrays), {n: Array(held[n]) for n in held.files}
    shapes = {n: x.shape for n, x in feeds.items()}
    mod, params = relay.frontend.from_mxnet(Symbol(symbol), shapes, arg_params=params)
    free = [p.name_hint for p in mod["main"].params if p.name_hint not in params]
    _write(mod, {n: p.numpy() for n, p in params.items()}, [feeds[n] for n in free], Path(folder),
           computes)  # fmt: skip


def _write(module, params, feeds, folder, computes=True):
    module = relay.transform.InferType()(module)
    held = {n: tvm.nd.array(p) for n, p in params.items()}
    (folder / "net.params").write_bytes(relay.save_param_dict(held))
    with tvm.transform.PassContext(opt_level=3):
        fused = tvm.transform.Sequential(PASSES)(module)
    for name, stage in (("imported", module), ("fused", fused)):
        (folder / f"{name}.txt").write_text(stage.astext(show_meta_data=True))
        (folder / f"{name}.json").write_text(tvm.ir.save_json(stage))
    np.savez(folder / "in.npz", *feeds)
    if not computes:
        return
    with tvm.transform.PassContext(opt_level=3):
        code = relay.vm.compile(module, target="llvm", params=held)
    machine = tvm.runtime.vm.VirtualMachine(code, tvm.cpu())
    result = machine.run(*(tvm.nd.array(x) for x in feeds))
    np.savez(folder / "out.npz", *(y.numpy() for y in flat(result)))
