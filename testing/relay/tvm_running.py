"""Run whole networks for ``tvm_worker.py``: compiled in the least time TVM can do it in.

What takes TVM minutes is not code generation. ``SimplifyExpr`` infers the types of the whole
module anew after every match, ``FoldConstant`` compiles a program for every constant, and the
virtual machine's ``ManifestLifetimes`` grows with the square of the number of calls. Without the
first two, with the weights for arguments and by the graph executor, Inception v3 takes 15 seconds
of a processor's time.
"""

from __future__ import annotations

import signal

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

LEFT_OUT = ["SimplifyExpr", "SimplifyExprPostAlterOp", "FoldConstant"]  # none changes a result
TARGET = "llvm -opt-level=1"
COMPILED = {}  # what was compiled last, by the structural hash of its module
KEPT = 2


def flat(value):
    """The tensors of a result."""
    fields = [value] if isinstance(value, tvm.nd.NDArray) else value
    return [value] if fields is not value else [leaf for v in value for leaf in flat(v)]


def execute(module, arrays, seconds):
    """What ``main`` gives for arrays by name, flattened; this process ends after so long."""
    signal.alarm(seconds)
    try:
        # names do not enter the hash, so that what came by two ways is compiled once
        key = tvm.ir.structural_hash(module, map_free_vars=True)
        if key not in COMPILED:
            for old in list(COMPILED)[: len(COMPILED) + 1 - KEPT]:
                del COMPILED[old]
            COMPILED[key] = compile_module(module)
        names = [p.name_hint for p in module["main"].params]
        return COMPILED[key]([tvm.nd.array(arrays[n]) for n in names])
    finally:
        signal.alarm(0)


def compile_module(module):
    """A function of the arguments of ``main``."""
    if by_graph(module):
        return build_static(module)
    with tvm.transform.PassContext(opt_level=1, disabled_pass=LEFT_OUT):
        code = relay.vm.compile(module, target=TARGET)
    machine = tvm.runtime.vm.VirtualMachine(code, tvm.cpu())
    return lambda arrays: [y.numpy() for y in flat(machine.run(*arrays))]


def build_static(module):
    """The same of a graph of static shapes, which the graph executor runs."""
    with tvm.transform.PassContext(opt_level=1, disabled_pass=LEFT_OUT):
        library = relay.build(module, target=TARGET)
    names = [p.name_hint for p in module["main"].params]

    def run(arrays):
        executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
        for name, array in zip(names, arrays, strict=True):
            executor.set_input(name, array)
        executor.run()
        return [np.array(executor.get_output(i).numpy()) for i in range(executor.get_num_outputs())]

    return run


def by_graph(module):
    """Whether ``main`` is a graph of calls with known sizes, which the graph executor can run."""
    plain = (relay.Var, relay.Constant, relay.Call, relay.Tuple, relay.TupleGetItem, tvm.ir.Op)
    seen = []
    relay.analysis.post_order_visit(module["main"].body, seen.append)
    main, names = module["main"], [p.name_hint for p in module["main"].params]
    seen = [e for e in (*seen, *main.params) if not isinstance(e, tvm.ir.Op)]
    return (
        len(module.functions) == 1
        and len(set(names)) == len(names)
        and all(isinstance(e, plain) for e in seen)
        and all(isinstance(p.checked_type, tvm.ir.TensorType) for p in main.params)
        and not any(
            relay.ty.is_dynamic(e.checked_type) for e in seen if not isinstance(e, tvm.ir.Op)
        )
    )
