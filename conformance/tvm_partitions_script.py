"""Partition a module by serde and by TVM's passes; ``tvm_partitions.py`` runs this beside TVM.

    python conformance/tvm_partitions_script.py SITE MODULE.json PARAMETERS LISTS

SITE is the folder of TVM's own packages. Prints a line of JSON: for each of as many random lists of
the module's operators, parts and bytes of serde, then those of TVM. Both cut the same graph, that
of the calls of the module, where the same calls are taken.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPSET = 17
Counts = tuple[int, int]  # parts, and the bytes that they read and make


def compare(module: Any, lists: int) -> dict[str, list[int]]:
    """Partition a module by serde and by TVM for random lists of its operators."""
    import serde
    from serde.bridges.tvm_byoc import SETTINGS, register_codegen
    from serde.legalize.target import Target

    graph = serde.load(module)
    operators = sorted({n.op for n in graph.nodes if not n.domain and n.op != "Identity"})
    found: dict[str, list[int]] = {}
    for seed in range(lists):
        rng = random.Random(seed)
        ops = rng.sample(operators, rng.randint(1, max(len(operators) - 1, 1)))
        register_codegen(Target(f"list {seed}", OPSET, {op: {} for op in ops}))
        name = SETTINGS.backend.name
        found[name] = [*count_by_serde(module), *count_by_tvm(module)]
    return found


def count_by_serde(module: Any) -> Counts:
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
        if isinstance(expression, relay.Constant):
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


def count_by_tvm(module: Any) -> Counts:
    """The functions for ``onnx`` of TVM that compute something, and what they read and make."""
    import tvm
    from tvm import relay

    transform = relay.transform
    passes = [transform.AnnotateTarget("onnx"), transform.MergeCompilerRegions(),
              transform.PartitionGraph(), transform.InferType()]  # fmt: skip
    parts = moved = 0
    for function in tvm.transform.Sequential(passes)(module).functions.values():
        if not function.attrs or function.attrs.get("Compiler") != "onnx":
            continue
        visited: list[Any] = []
        relay.analysis.post_order_visit(function.body, visited.append)
        if any(isinstance(e, relay.Call) for e in visited):
            types = [*(p.checked_type for p in function.params), function.checked_type.ret_type]
            parts += 1
            moved += sum(bytes_of(t) for type_ in types for t in tensor_types(type_))
    return parts, moved


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


def run_module(site: str, path: str, params: str, lists: str) -> None:
    """Compare the module of a file; print the row."""
    sys.path.append(site)
    import tvm
    from tvm import relay

    module = tvm.ir.load_json(Path(path).read_text())
    held = dict(relay.load_param_dict(Path(params).read_bytes()))
    module["main"] = relay.build_module.bind_params_by_name(module["main"], held)
    print(json.dumps(["row", compare(relay.transform.InferType()(module), int(lists))]))


if __name__ == "__main__":
    run_module(*sys.argv[1:])
