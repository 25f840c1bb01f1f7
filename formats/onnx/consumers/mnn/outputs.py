"""Outputs as MNN keeps them apart from what it computes of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.replace_uses import replace_inputs
from serde.spec.traits import RESHAPES

from ..used_names import used_names

# Operators that MNN moves behind the next one, whose result it then returns for theirs.
MOVED = RESHAPES | {"Identity"}
CLIPPING = frozenset(("LeakyRelu", "Relu"))  # which it joins with moves


def copy_shared_outputs(graph: Graph) -> Graph:
    """Return a lowered graph whose outputs are copied where other nodes read them, too."""
    names = used_names(graph)
    instead = {v: replace(v, name=names.fresh(f"{v.name}/moved")) for v in find_shared(graph)}
    if not instead:
        return graph
    nodes = [replace_inputs(node, instead) for node in graph.nodes]
    nodes = [replace(n, outputs=tuple(instead.get(v, v) for v in n.outputs)) for n in nodes]
    return replace(graph, nodes=(*nodes, *(make_copy(copied, v) for v, copied in instead.items())))


def find_shared(graph: Graph) -> list[Value]:
    """Outputs that MNN may lose: those that others read, too, and those of what others read.

    It puts elementwise operators before moves and joins them with what is before; then outputs are
    those of the next node, or have the shape of the node before.
    """
    reads = Counter(v for node in graph.nodes for v in node.inputs)
    uses = reads + Counter(graph.outputs)
    moved = {n.outputs[0]: n.inputs[0] for n in graph.nodes if n.op in MOVED}
    outputs = dict.fromkeys(v for v in graph.outputs if v in moved)
    constants = {v for v in outputs if (x := moved[v]) is not None and x.tensor is not None}
    merged = constants if len(constants) > 1 else ()  # where they are equal
    shared = [v for v in outputs if reads[moved[v]] > 1 or v in merged]
    computed = {v for n in graph.nodes for v in n.outputs}
    clipped = {n.outputs[0]: n.inputs[0] for n in graph.nodes if n.op in CLIPPING}
    others = [
        v for v in graph.outputs
        if (reads[v] and v in computed) or (v in clipped and uses[clipped[v]] > 1)
    ]  # fmt: skip
    return list(dict.fromkeys((*shared, *others)))


def make_copy(x: Value, y: Value) -> Node:
    """A node that leaves its operand as it is, and that MNN does not drop, as it does ``Add``."""
    op = "And" if x.type is DType.BOOL else "Min"
    return Node(op, (x, x), (y,), {}, "", y.name)
