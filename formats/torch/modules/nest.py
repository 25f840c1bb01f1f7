"""Expressions of a module as one call of it, where its values enter and leave as arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from serde.ir.dim_expr import is_number
from serde.ir.graph import Graph, Node, Source, Value

from ..source.variables import ALWAYS_INLINED
from ..target import Module, Slot
from .functions import operands_of
from .plan import Plan
from .scopes import Path

MOST_VALUES = 8  # that enter a module, or leave it
MOST_GAPS = 32  # places of a list for each member of it that does anything
CALL = "call"  # the operator of a node that calls a module with a ``forward`` of its own
# Functions as modules, which a sequence consists of.
MODULES = {
    "F.relu": "nn.ReLU", "F.gelu": "nn.GELU", "F.silu": "nn.SiLU", "F.hardswish": "nn.Hardswish",
    "F.mish": "nn.Mish", "F.elu": "nn.ELU", "F.softplus": "nn.Softplus", "F.softmax": "nn.Softmax",
    "F.leaky_relu": "nn.LeakyReLU", "torch.sigmoid": "nn.Sigmoid", "torch.tanh": "nn.Tanh",
    "F.log_softmax": "nn.LogSoftmax", "F.max_pool1d": "nn.MaxPool1d", "F.pad": "nn.ConstantPad2d",
    "F.max_pool2d": "nn.MaxPool2d", "F.max_pool3d": "nn.MaxPool3d", "F.avg_pool1d": "nn.AvgPool1d",
    "F.avg_pool2d": "nn.AvgPool2d", "F.avg_pool3d": "nn.AvgPool3d", ".flatten": "nn.Flatten",
    "F.interpolate": "nn.Upsample", "F.adaptive_avg_pool1d": "nn.AdaptiveAvgPool1d",
    "F.adaptive_avg_pool2d": "nn.AdaptiveAvgPool2d",
    "F.adaptive_avg_pool3d": "nn.AdaptiveAvgPool3d",
    "F.adaptive_max_pool1d": "nn.AdaptiveMaxPool1d",
    "F.adaptive_max_pool2d": "nn.AdaptiveMaxPool2d",
    "F.adaptive_max_pool3d": "nn.AdaptiveMaxPool3d",
}  # fmt: skip


@dataclass
class Block:
    """The expressions of a module with a ``forward``; ``sequence`` are its members by number."""

    path: Path
    graph: Graph
    sequence: dict[int, Node] | None = None


class Nesting:
    """The blocks of a plan: ``blocks`` by path, and the model's own last, at ()."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.homes = plan, plan.homes
        self.blocks: dict[Path, Block] = {}
        self.order: list[Node | None] = list(self.share_sizes(plan.graph.nodes))
        self.place = {n: at for at, n in enumerate(self.order) if n is not None}
        self.readers: dict[Value, set[Node]] = {}
        for node in self.place:
            for value in operands_of(node):
                if value is not None:
                    self.readers.setdefault(value, set()).add(node)
        self.inside: dict[Path, list[Node]] = {}
        for node in self.place:
            self.inside.setdefault(self.homes[node], []).append(node)
        self.names = self.list_names()
        self.numbered = {p for p, of in self.names.items() if are_places(of)}
        for path in sorted(plan.called, key=lambda p: (-len(p), p)):
            self.contract(path)
        left = tuple([node for node in self.order if node is not None])
        self.blocks[()] = Block((), replace(plan.graph, nodes=left))

    def list_names(self) -> dict[Path, set[str]]:
        """What the members of each module are called; "" stands for an array."""
        plan = self.plan
        names: dict[Path, set[str]] = {}
        for path in plan.members.values():
            for end in range(len(path)):
                names.setdefault(path[:end], set()).add(path[end])
        for path in plan.arrays.values():
            names.setdefault(path[:-1], set()).add("")
        for path in plan.unread:
            for end in range(len(path)):
                names.setdefault(path[:end], set()).add(path[end] if end < len(path) - 1 else "")
        return names

    def share_sizes(self, nodes: Sequence[Node]) -> Iterator[Node]:
        """The nodes, with sizes that several modules read in each of them."""
        readers: dict[Value, set[Path]] = {}
        makers = {n.outputs[0]: n for n in nodes if n.op in ALWAYS_INLINED}
        for node in nodes:
            for value in operands_of(node):
                if value in makers:
                    readers.setdefault(value, set()).add(self.homes[node])
        copies: dict[tuple[Value, Path], Value] = {}
        for node in nodes:
            if node in makers.values():
                homes = sorted(readers.get(node.outputs[0], ()))
                if homes == [self.homes[node]]:
                    yield node
                    continue
                for home in homes:
                    size = node.outputs[0]
                    value = Value(size.name, size.dtype, size.shape)
                    copies[size, home] = value
                    copy = replace(node, outputs=(value,))
                    self.homes[copy] = home
                    yield copy
                continue
            home = self.homes[node]
            inputs = tuple(
                [copies.get((v, home), v) if v is not None else None for v in node.inputs]
            )
            yield self.renew(node, inputs) if inputs != node.inputs else node

    def renew(self, node: Node, inputs: tuple[Value | None, ...]) -> Node:
        """A node that reads other values, at the same place."""
        plan, changed = self.plan, replace(node, inputs=inputs)
        self.homes[changed] = self.homes[node]
        if node in plan.members:
            plan.members[changed] = plan.members.pop(node)
        if node in plan.scopes:
            plan.scopes[changed] = plan.scopes[node]  # type: ignore[index]
        return changed

    def contract(self, path: Path) -> None:
        """Make a module's expressions one call, or leave them to the module around it."""
        nodes = sorted(self.inside.pop(path, ()), key=self.place.__getitem__)
        outer = max((p for p in self.plan.called if len(p) < len(path) and path[: len(p)] == p),
                    key=len, default=())  # fmt: skip
        closure = self.close(path, nodes) if nodes else None
        block = None if closure is None else self.make_block(path, *closure)
        if closure is None or block is None:
            for node in nodes:
                self.homes[node] = outer
            self.inside.setdefault(outer, []).extend(nodes)
            return
        members, tainted = closure
        inputs, outputs = block.graph.inputs, block.graph.outputs
        slots = tuple(map(Slot, range(len(inputs))))
        source = Source("torch", CALL, ".".join(path))
        call = Node(CALL, inputs, outputs, {"args": slots, "path": path}, "torch",
                    sources=(source,))  # fmt: skip
        self.homes[call] = outer
        self.blocks[path] = block
        self.inside.setdefault(outer, []).append(call)
        self.put(call, members, tainted)

    def put(self, call: Node, members: set[Node], tainted: set[Node]) -> None:
        """Let a call stand for nodes, before what reads its results."""
        places = [self.place[n] for n in members]
        first, last = min(places), max(places)
        others = [n for n in self.order[first : last + 1] if n is not None and n not in members]
        segment: list[Node | None] = [
            *(n for n in others if n not in tainted),
            call,
            *(n for n in others if n in tainted),
        ]
        for node in members:
            home = self.homes[node]
            if home in self.inside and node in self.inside[home]:
                self.inside[home].remove(node)
            for value in operands_of(node):
                if value is not None:
                    self.readers[value].discard(node)
        for value in call.inputs:
            if value is not None:
                self.readers.setdefault(value, set()).add(call)
        segment += [None] * (last + 1 - first - len(segment))
        self.order[first : last + 1] = segment
        self.place.update((n, first + at) for at, n in enumerate(segment) if n is not None)

    def close(self, path: Path, nodes: list[Node]) -> tuple[set[Node], set[Node]] | None:
        """A module's nodes with those between them, and those that read what they compute."""
        members = set(nodes)
        first, last = self.place[nodes[0]], self.place[nodes[-1]]
        inner_values = {v for n in nodes for v in n.outputs}
        tainted: dict[Value, Node] = {}
        wanted: list[Node] = []
        for node in self.order[first : last + 1]:
            if node is None:
                continue
            reads = [v for v in operands_of(node) if v is not None]
            if node in members:
                wanted += [tainted[v] for v in reads if v in tainted]
            elif any(v in inner_values or v in tainted for v in reads):
                tainted.update(dict.fromkeys(node.outputs, node))
        while wanted:
            node = wanted.pop()
            if node in members:
                continue
            home = self.homes[node]
            is_around = len(home) < len(path) and path[: len(home)] == home
            if not is_around or node.op == CALL or "module" in node.attrs:
                return None
            members.add(node)
            wanted += [tainted[v] for v in operands_of(node) if v in tainted]  # type: ignore[index]
        after = {n for n in tainted.values() if n not in members}
        return members, after

    def make_block(self, path: Path, members: set[Node], tainted: set[Node]) -> Block | None:
        nodes = sorted(members, key=self.place.__getitem__)
        inner_values = {v for n in nodes for v in n.outputs}
        results = set(self.plan.graph.outputs)
        outputs = [v for n in nodes for v in n.outputs
                   if v in results or self.readers.get(v, set()) - members]  # fmt: skip
        nodes = self.read_sizes_of_arguments(path, nodes, inner_values)
        inputs = list(dict.fromkeys(v for n in nodes for v in operands_of(n)
                                    if v is not None and v not in inner_values
                                    and self.is_argument(v, path)))  # fmt: skip
        if not outputs or max(len(inputs), len(outputs)) > MOST_VALUES:
            return None
        graph = Graph(".".join(path), tuple(inputs), tuple(outputs), tuple(nodes), "torch")
        block = Block(path, graph)
        if path in self.numbered:
            block.sequence = self.find_sequence(block)
            return block if block.sequence else None
        return block

    def is_argument(self, value: Value, path: Path) -> bool:
        """Whether a module cannot read a value of its own members."""
        if value.tensor is None:
            return True
        place = self.plan.arrays.get(value)
        return place is not None and place[: len(path)] != path

    def read_sizes_of_arguments(
        self, path: Path, nodes: list[Node], inner_values: set[Value]
    ) -> list[Node]:  # fmt: skip
        """The nodes, with sizes read of values that the module has anyway."""
        others = list(dict.fromkeys(
            v for n in nodes if n.op not in ALWAYS_INLINED for v in operands_of(n)
            if v is not None and v not in inner_values and v.tensor is None and v.shape is not None
        ))  # fmt: skip
        result: list[Node] = []
        for node in nodes:
            x = node.inputs[0] if node.op in ALWAYS_INLINED else None
            if x is None or x in inner_values or x in others:
                result.append(node)
                continue
            if node.op == "device" and others:
                node = self.renew_in_place(node, replace(node, inputs=(others[0],)))
            elif node.op == "size" and x.shape is not None:
                args: Any = node.attrs["args"]
                dim = x.shape[args[1]]
                twin = next((v for v in others if isinstance(dim, str) and dim in (v.shape or ())),
                            None)  # fmt: skip
                if twin is not None and twin.shape is not None:
                    attrs = {**node.attrs, "args": (args[0], twin.shape.index(dim))}
                    node = self.renew_in_place(node, replace(node, inputs=(twin,), attrs=attrs))
            result.append(node)
        return result

    def renew_in_place(self, node: Node, changed: Node) -> Node:
        self.homes[changed], self.place[changed] = self.homes[node], self.place[node]
        for value in node.inputs:
            if value is not None:
                self.readers[value].discard(node)
        return changed

    def find_sequence(self, block: Block) -> dict[int, Node] | None:
        """The members of a module by number, if each reads what the one before it computes."""
        path, graph = block.path, block.graph
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return None
        current = graph.inputs[0]
        members: dict[int, Node] = {}
        for node in graph.nodes:
            number = self.find_number(node, path)
            reads = [v for v in operands_of(node) if v is not None]
            args: Any = node.attrs["args"]
            is_next = number is not None and number > max(members, default=-1)
            is_plain = reads == [current] and args[:1] == (Slot(0),) and len(node.outputs) == 1
            if (
                not is_next
                or not is_plain
                or (self.readers[current] - set(graph.nodes) and members)
            ):
                return None
            assert number is not None
            member = node if "module" in node.attrs or node.op == CALL else as_module(node)
            if member is None or (("module" in node.attrs or node.op == CALL) and len(args) != 1):
                return None
            members[number] = member
            current = node.outputs[0]
        is_all = self.names[path] <= {str(number) for number in members}
        is_whole = is_all and current is graph.outputs[0] and max(members) <= 2 * len(members) + 1
        return members if is_whole else None

    def find_number(self, node: Node, path: Path) -> int | None:
        """The number of the member of a module that a node is."""
        scope = self.plan.scopes.get(node)
        place: Any = node.attrs.get("path") or self.plan.members.get(node)
        if place is None and scope is not None:
            place = scope.path
        is_member = place is not None and len(place) == len(path) + 1 and place[:-1] == path
        return int(place[-1]) if is_member and is_number(place[-1]) else None


def are_places(names: Collection[str]) -> bool:
    """Whether members are those of a list, whose gaps, such as activations, are filled."""
    if not all(map(is_number, names)):
        return False
    places = [int(name) for name in names]
    return {*map(str, places)} == {*names} and max(places) < MOST_GAPS * (len(places) + 1)


def as_module(node: Node) -> Node | None:
    """A function of one tensor as a module."""
    args: Any = node.attrs["args"]
    options = {k: v for k, v in node.attrs.items() if k != "args"}
    op, args = MODULES.get(node.op), args[1:]
    if node.op == ".clamp" and options == {"min": 0.0, "max": 6.0}:
        op, options = "nn.ReLU6", {}
    elif node.op == ".mean" and options == {"dim": (2, 3), "keepdim": True}:
        op, args, options = "nn.AdaptiveAvgPool2d", (1,), {}
    elif node.op == "F.pad":
        is_plane = len(args) == 1 and isinstance(args[0], tuple) and len(args[0]) == 4
        args, op = (*args, 0.0), op if is_plane and not options else None
    elif args == (1,) and node.op == ".flatten":
        args = ()
    if op is None:
        return None
    module = Module(tuple(args), MappingProxyType(options), ())
    return replace(node, op=op, attrs={"args": (Slot(0),), "module": module})
