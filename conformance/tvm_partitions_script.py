"""Partition a module by serde and by TVM's passes; ``tvm_partitions.py`` runs this beside TVM.

    python conformance/tvm_partitions_script.py SITE LISTS testing MODULE OPTIONS
    python conformance/tvm_partitions_script.py SITE LISTS gluon SYMBOL WEIGHTS.npz SHAPES

SITE is the folder of TVM's own packages, OPTIONS and SHAPES are JSON. Prints a line of JSON: for
each of as many random lists of the module's operators, parts and bytes of serde, then those of TVM.
Both cut the same graph, that of the calls of the module, where the same calls are taken. Weights
stay parameters, and are not counted.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from importlib import import_module
from typing import Any

import numpy as np

OPSET = 17
LARGE, FEW = 150, 3  # nodes of a network that is cut for few lists only, as TVM takes long
SECONDS = 20  # of the processor, for TVM's passes on one list
Counts = tuple[int, int]  # parts, and the bytes that they read and make


def compare(module: Any, weights: Set[str], lists: int) -> dict[str, list[int | None]]:
    """Partition a module by serde and by TVM for random lists of its operators."""
    import serde
    from serde.bridges.tvm_byoc import SETTINGS, register_codegen
    from serde.legalize.target import Target

    graph = serde.load(module)
    operators = sorted({n.op for n in graph.nodes if not n.domain and n.op != "Identity"})
    rows: dict[str, list[int | None]] = {}
    for seed in range(lists if len(graph.nodes) <= LARGE else FEW):
        rng = random.Random(seed)
        ops = rng.sample(operators, rng.randint(1, max(len(operators) - 1, 1)))
        register_codegen(Target(f"list {seed}", OPSET, {op: {} for op in ops}))
        name = SETTINGS.backend.name
        rows[name] = [*count_by_serde(module, weights), *limit_time(count_by_tvm, module, weights)]
    return rows


def count_by_serde(module: Any, weights: Set[str]) -> Counts:
    """The stages that serde puts the calls of ``main`` into, and the bytes between them."""
    from tvm import relay

    from serde.backends.stages import Dataflow, assign_stages, count_bytes_moved
    from serde.bridges.tvm_byoc import takes_call

    numbers: dict[Any, list[int]] = {}  # of the tensors of an expression
    sizes: list[int] = []
    reads, makes, taken = [], [], []

    def number(expression: Any) -> list[int]:
        first = len(sizes)
        sizes.extend(map(bytes_of, tensor_types(expression.checked_type)))
        return list(range(first, len(sizes)))

    def visit(expression: Any) -> None:
        if is_weight(expression, weights):
            numbers[expression] = []
        elif isinstance(expression, relay.Tuple):
            numbers[expression] = [n for f in expression.fields for n in numbers[f]]
        elif isinstance(expression, relay.TupleGetItem):
            numbers[expression] = [numbers[expression.tuple_value][expression.index]]
        elif isinstance(expression, relay.Call):
            numbers[expression] = number(expression)
            reads.append(sorted({n for a in expression.args for n in numbers[a]}))
            makes.append(numbers[expression])
            taken.append(takes_call(expression))
        elif isinstance(expression, relay.Var):
            numbers[expression] = number(expression)

    main = module["main"]
    relay.analysis.post_order_visit(main.body, visit)
    leaving = set(numbers[main.body])
    flow = Dataflow(reads, makes, sizes, [n in leaving for n in range(len(sizes))])
    stages = assign_stages(flow, taken)
    return len({s for s in stages if s % 2}), count_bytes_moved(flow, stages)


def limit_time(count: Callable[..., Counts], *arguments: Any) -> Sequence[int | None]:
    """What a function counts in a process of its own; None twice if that takes too long."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS,) * 2)
        os.write(sink, json.dumps(count(*arguments)).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else (None, None)


def count_by_tvm(module: Any, weights: Set[str]) -> Counts:
    """The functions for ``onnx`` of TVM that compute something, and what they read and make."""
    import tvm
    from tvm import relay

    transform = relay.transform
    passes = [transform.AnnotateTarget("onnx"), transform.MergeCompilerRegions(),
              transform.PartitionGraph(), transform.InferType()]  # fmt: skip
    mod = tvm.transform.Sequential(passes)(module)
    called: list[Any] = []
    relay.analysis.post_order_visit(
        mod["main"].body, lambda e: called.append(e) if is_part(e) else None
    )
    parts = moved = 0
    for call in called:
        visited: list[Any] = []
        relay.analysis.post_order_visit(mod[call.op].body, visited.append)
        if any(isinstance(e, relay.Call) for e in visited):
            types = [a.checked_type for a in call.args if not is_weight(a, weights)]
            parts += 1
            moved += sum(bytes_of(t) for type_ in (*types, call.checked_type)
                         for t in tensor_types(type_))  # fmt: skip
    return parts, moved


def is_weight(expression: Any, weights: Set[str]) -> bool:
    """Whether an expression is a constant, or a parameter that is a weight."""
    from tvm import relay

    is_parameter = isinstance(expression, relay.Var) and expression.name_hint in weights
    return is_parameter or isinstance(expression, relay.Constant)


def is_part(expression: Any) -> bool:
    """Whether an expression is the call of a part."""
    from tvm import relay

    return isinstance(expression, relay.Call) and isinstance(expression.op, relay.GlobalVar)


def tensor_types(type_: Any) -> Iterator[Any]:
    """The types of the tensors of a value."""
    if not hasattr(type_, "fields"):
        yield type_
        return
    for each in type_.fields:
        yield from tensor_types(each)


def bytes_of(type_: Any) -> int:
    """The bytes of a tensor."""
    size = 1
    for dim in type_.shape:
        size *= int(dim)
    bits = int("".join(c for c in type_.dtype if c.isdigit()) or 8)
    return size * bits // 8


def make_testing(name: str, options: str) -> tuple[Any, Set[str]]:
    """A network of ``tvm.relay.testing``, and the names of its weights."""
    kwargs = {k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(options).items()}
    module, params = import_module(f"tvm.relay.testing.{name}").get_workload(**kwargs)
    return module, set(params)


def make_gluon(symbol: str, weights: str, shapes: str) -> tuple[Any, Set[str]]:
    """A network that MXNet exported, by TVM's frontend, and the names of its weights."""
    from tvm import relay

    from testing.relay.tvm_networks import Array, Symbol, _stand_in

    sys.modules.setdefault("mxnet", _stand_in())
    with np.load(weights) as held:
        arrays = {n: Array(held[n]) for n in held.files}
    sizes = {n: tuple(s) for n, s in json.loads(shapes).items()}
    module, params = relay.frontend.from_mxnet(Symbol(symbol), sizes, arg_params=arrays)
    return module, set(params)


def run(site: str, lists: str, kind: str, *arguments: str) -> None:
    """Compare a module; print the row."""
    sys.path.append(site)
    from tvm import relay

    make = {"testing": make_testing, "gluon": make_gluon}[kind]
    module, weights = make(*arguments)
    typed = relay.transform.InferType()(module)
    print(json.dumps(["row", compare(typed, weights, int(lists))]))


if __name__ == "__main__":
    run(*sys.argv[1:])
