"""Which expression is a line of its own, and what variable its result goes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serde.ir.graph import Graph, Node, Value

from .names import Scope, to_identifier

NAMES = tuple("xyzuvwabcdefghkmnpqrst")  # of values that pass between layers
LONGEST_FALLBACK = 20  # letters of a variable that is named after a layer
DEEPEST = 2  # calls in each other
ALWAYS_INLINED = frozenset(("device", "shape", "size"))  # arithmetic of sizes, which is short


def find_inlined(graph: Graph) -> dict[Node, list[Node]]:
    """Nodes that are written inside the expressions that read their result, and those' nodes.

    They are of one source layer, and one other node reads what they compute, once; or sizes.
    """
    reads = graph.uses()
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for value in dict.fromkeys(node.inputs):
            if value is not None:
                readers.setdefault(value, []).append(node)
    makers = {v: node for node in graph.nodes for v in node.outputs}
    outputs, inlined = set(graph.outputs), {}
    around = [node for node in graph.nodes if node.graphs()]
    read_around = {v for n in around for v in n.inputs if v is not n.inputs[0]}
    depth: dict[Node, int] = {}
    for node in graph.nodes:
        before = [makers.get(v) for v in node.inputs if v is not None]
        nested = [depth[m] for m in before if m is not None and m in inlined]
        depth[node] = 1 + max(nested, default=-1)
        result = node.outputs[0]
        reading = readers.get(result, [])
        if len(node.outputs) != 1 or result in read_around or node.graphs():
            continue
        is_size = node.op in ALWAYS_INLINED and result not in outputs
        is_same_layer = len(reading) == 1 and node.sources == reading[0].sources
        is_nested = reads[result] == 1 and is_same_layer and depth[node] < DEEPEST
        if is_size or (is_nested and node.sources):
            inlined[node] = reading
            depth[node] -= is_size
    return inlined


def find_last_reads(graph: Graph, inlined: Mapping[Node, list[Node]]) -> dict[Value, Node | None]:
    """The node of the last statement that reads each value; None: the result."""
    place = {node: at for at, node in enumerate(graph.nodes)}
    statement: dict[Node, Node] = {}  # the last that a node is written in
    last: dict[Value, Node | None] = {}
    for node in reversed(graph.nodes):
        readers = [statement[r] for r in inlined.get(node, ())]
        statement[node] = max(readers, key=place.__getitem__) if readers else node
        for value in node.inputs:
            if value is None:
                continue
            before = last.get(value)
            if before is None or place[before] < place[statement[node]]:
                last[value] = statement[node]
    last.update((v, None) for v in graph.outputs)
    return last


class Variables:
    """Names of values, given out so that one that is read no more frees its name."""

    def __init__(self, inputs: Mapping[Value, str], reserved: Sequence[str]) -> None:
        self.names: dict[Value, str] = dict(inputs)
        self._busy = Scope((*inputs.values(), *reserved))
        self._inputs = frozenset(inputs.values())

    def copy(self) -> Variables:
        """The names that are known in a block."""
        copied = Variables({}, ())
        copied.names, copied._inputs = {**self.names}, self._inputs
        copied._busy = Scope(self._busy.used)
        return copied

    def claim(self, stem: str) -> str:
        """A name that is not in use, for what is no value of the graph."""
        return self._busy.claim(stem)

    def free(self, name: str | None) -> None:
        """Let a name be given out again."""
        if name is not None:
            self._busy.release(name)

    def is_busy(self, name: str) -> bool:
        """Whether a name holds something that is still read."""
        return name in self._busy.used

    def has_short_name(self) -> bool:
        """Whether a name of one letter is free."""
        return not self._busy.used.issuperset(NAMES)

    def release(self, value: Value) -> str | None:
        """Free the name of a value that is read no more; inputs keep theirs."""
        name = self.names.get(value)
        if name is None or name in self._inputs:
            return None
        self._busy.release(name)
        return name

    def assign(self, value: Value, preferred: str | None, layer: str) -> str:
        """The variable of a new value: one that was read last, or the first that is free.

        Where none is, it is named after its layer.
        """
        name = preferred
        if name is None or self.is_busy(name):
            name = next((n for n in NAMES if not self.is_busy(n)), None)
        name = self._busy.claim(name or to_identifier(layer)[:LONGEST_FALLBACK])
        self.names[value] = name
        return name
