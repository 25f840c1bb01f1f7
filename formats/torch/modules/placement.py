"""The place of each member in the modules, and the module whose ``forward`` has each expression."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from serde.ir.graph import Graph, Node, Run, Value
from serde.spec.weight_origins import is_rearranged, is_whole, names_in, origins_of

from ..source import names as naming
from ..target import Slot
from .exported_constants import IN_ORDER, list_exported_constants
from .folded import FoldedArrays
from .frozen_norms import restore_frozen_norms
from .functions import FUNCTIONS, operands_of, parameters_of, take_bias_apart, to_function
from .homes import find_homes
from .parametrizations import find_scheme, parametrize
from .plan import Plan, flatten
from .scopes import Path, Scope, find_scopes, is_key, list_keys, read_signature, split_name
from .tie_arrays import tie_arrays
from .unfold import unfold_batch_norms
from .wholes import Wholes, is_turned_square

PACKED = "in_proj_"  # begins the arrays of attention that hold those of several layers


def place(
    graph: Graph, origins: Mapping[Value, Value], is_nested: bool, is_short: bool,
    inference: bool = False,
) -> Plan:  # fmt: skip
    """Place all members: nested as the source names them, or in one module."""
    # Bodies of branches and loops read the values of the graph around: they stay in one module.
    is_nested = is_nested and not any(node.graphs() for node in graph.nodes)
    scopes = find_scopes(graph) if is_nested else {}
    if scopes:
        plan = _Placing(graph, origins, scopes).place(inference)
    else:
        plan = _place_by_names(tie_arrays(graph), is_nested, is_short)
    plan.origins = origins
    return plan


def layer_of(node: Node) -> str:
    """The source's layer that a node is of."""
    return node.sources[0].name if node.sources and node.sources[0].name else node.name or node.op


def _place_by_names(graph: Graph, is_nested: bool, is_short: bool) -> Plan:
    """Layers by their names; those of a block are in it where there are several."""
    plan = Plan(graph)
    layers = {n: layer_of(n) for n in graph.all_nodes() if "module" in n.attrs}
    short = naming.shorten(layers.values()) if is_short else {n: n for n in layers.values()}
    if not is_nested or not is_short:
        plan.members = {n: (short[name],) for n, name in layers.items()}
        plan.homes = dict.fromkeys(graph.nodes, ())
        return plan
    paths = {name: split_name(text) for name, text in short.items()}
    count = Counter(path[:end] for path in paths.values() for end in range(1, len(path)))
    plan.called = {path for path, members in count.items() if 1 < members < len(paths)}
    start = next((len(n) - len(s) for n, s in short.items() if n.endswith(s)), 0)
    lead = next(iter(short), "")[:start]
    for node in graph.nodes:
        name = layer_of(node)
        path = paths.get(name) or split_name(name.removeprefix(lead))
        ends = [end for end in range(1, len(path)) if path[:end] in plan.called]
        plan.homes[node] = path[: ends[-1]] if ends else ()
        if node in layers:
            plan.members[node] = path
    return plan


class _Placing:
    """Places the members of a model of PyTorch, which tells the modules around each node."""

    def __init__(
        self, graph: Graph, origins: Mapping[Value, Value], scopes: Mapping[Node, Scope]
    ) -> None:
        self.graph, self.origins, self.scopes = graph, dict(origins), dict(scopes)
        self.is_rearranged = cache(is_rearranged)  # which compares all elements
        self.plan = Plan(graph, scopes=self.scopes, is_checkpoint=True)
        self.nodes: list[Node] = []
        self.owners: dict[Path, str] = {}  # the class of each module that layers are in
        named = read_signature(graph)
        read = {p for scope in scopes.values() for p in scope.parameters}
        # Of these the exporter has computed others, which layers read.
        keys = list_keys(graph)
        self.unread = {key for name, key in named.items() if name not in read} - keys
        self.named = named
        self.parameters, self.keys = read.union(named), {*named.values()}
        present = {value.name: value for value in graph.arrays}
        self.folded = FoldedArrays(graph.nodes, scopes, origins, named, present)
        self.contents: dict[Path, set[str]] = {}  # what the members of each module are called
        for parts in (key.split(".") for key in self.keys or keys):
            for end in range(1, len(parts)):
                self.contents.setdefault(tuple(parts[:end]), set()).add(parts[end])

    def place(self, inference: bool) -> Plan:
        plan = self.plan
        nodes = list(self.graph.nodes)
        if not inference:
            nodes = unfold_batch_norms(nodes, self.scopes, self.keys_of, plan.assume)
            nodes = list(restore_frozen_norms(nodes, self.scopes, self.folded.lacks, plan.assume))
        leaves = Counter(s.path for n in nodes if "module" in n.attrs
                         and (s := self.scopes.get(n)))  # fmt: skip
        self.wholes = Wholes(nodes, self.origins, self.keys_of, self.is_rearranged)
        for scope in self.scopes.values():
            plan.classes.update(scope.classes)
        for node in nodes:
            node = self.read_wholes(node)
            self.nodes += [node] if "module" not in node.attrs else self.place_module(node, leaves)
        self.place_arrays()
        plan.graph = replace(self.graph, nodes=tuple(self.nodes))
        self.place_unread()
        find_homes(plan)
        if self.named:
            keyed = {*plan.arrays} - {v for v, is_key in plan.buffers.items() if not is_key}
            keyed.update(v for n in plan.members for v in parameters_of(n).values())
            plan.computed.update(list_exported_constants(
                self.nodes, self.scopes, self.folded, self.graph.inputs, keyed))  # fmt: skip
        return plan

    def place_unread(self) -> None:
        """Arrays that the source names and nothing reads are where it has them."""
        plan = self.plan
        placed = {(*path, name) for n, path in plan.members.items() for name in parameters_of(n)}
        placed.update(plan.arrays.values())
        read = {v for node in self.nodes for v in node.inputs if v is not None and v.tensor}
        # A checkpoint that is loaded would not change constants that are computed of these.
        computed = {name for v in read for run in origins_of(v) for name in run.names}
        for value in self.graph.arrays:
            path = tuple(value.name.split("."))
            if path not in placed and value.name not in computed and value.tensor is not None:
                plan.unread[path] = value
                if f"p_{flatten(path)}" not in self.parameters:
                    plan.buffers[value] = True

    def keys_of(self, value: Value) -> list[str]:
        """The arrays of the checkpoint that a constant is made of."""
        assert value.tensor is not None
        if self.is_rearranged(value):
            return []
        names = names_in(origins_of(value), 0, value.tensor.size)
        base = value
        while base in self.origins:
            base = self.origins[base]
        renamed = self.folded.renamed
        return [renamed.get(name, name) for name in names or (base.name,)
                if name in renamed or self.is_key(name, value)]  # fmt: skip

    def is_key(self, name: str, value: Value) -> bool:
        """Whether an array is one of the checkpoint's, and none that the exporter computed."""
        if "." in name or not self.parameters:
            return is_key(name) and ("." in name or value.type.kind == "f")
        return any(f"{kind}_{flatten((name,))}" in self.parameters for kind in "pb")

    def read_wholes(self, node: Node) -> Node:
        """A node that reads arrays as the checkpoint has them, behind what it reads of them."""
        inputs = list(node.inputs)
        for at, value in enumerate(operands_of(node)):
            if value is not None and value.tensor is not None:
                steps = self.read_whole(value, node)
                self.nodes += steps
                inputs[at] = steps[-1].outputs[0] if steps else value
        if inputs == [*node.inputs]:
            return node
        changed = replace(node, inputs=tuple(inputs))
        if node in self.scopes:
            self.scopes[changed] = self.scopes[node]
        return changed

    def read_whole(self, value: Value, node: Node) -> list[Node]:
        """The expressions of an array of the checkpoint that compute a constant."""
        scope = self.scopes.get(node)
        if self.is_rearranged(value):
            pass
        elif scope is not None and (keys := self.keys_of(value)) and self.folded.is_vector(scope):
            self.wholes.add_reshaped(value, keys)
        elif scope is not None and not keys:
            if steps := self.folded.read_expression(value, node, scope):
                self.scopes.update(dict.fromkeys(steps, scope))
                return steps
            self.wholes.add_reshaped(value, self.unread & self.folded.list_reshaped(value, scope))
            if table := self.folded.find_table(value, scope):
                self.plan.assume(IN_ORDER, table)
                self.wholes.add(value, table, value.static_shape[-2:])
            key = self.named.get(scope.find_indexed() or "")
            if key is not None and value.type.kind == "f":
                value.origins = (Run((key,), value.array().size, 0, value.static_shape),)
        steps = self.wholes.read(value, node)
        if scope is not None:
            self.scopes.update(dict.fromkeys(steps, scope))
        return steps

    def place_module(self, node: Node, leaves: Counter[Path]) -> Iterator[Node]:
        scope = self.scopes.get(node, Scope((), {}))
        around = scope.path
        parameters = parameters_of(node)
        keys = {name: self.keys_of(v) for name, v in parameters.items()}
        key_paths = [tuple(key.split(".")) for listed in keys.values() for key in listed]
        named = [tuple(key.split("."))[:-1] for name, listed in keys.items() for key in listed
                 if key.endswith(f".{name}")]  # fmt: skip
        # The exporter leaves out containers that are no module of the call, as nn.ModuleDict.
        count = len(around)
        inside = [path for path in named if around in (path[:count], path[-count:])]
        # What the call reads of another one is no array of a module.
        results = {name for name, value in parameters.items()
                   if not keys[name] and self.folded.is_result(value, scope)}  # fmt: skip
        place = (*inside, around)[0]
        is_own = not scope.text or place == around
        computed = self.parametrize(node, place) if is_own and not keys.get("weight") else None
        if computed is not None:
            yield computed
            return
        is_function = self.has_own_orientation(node, parameters) or (
            node.op in FUNCTIONS and any(map(partial(self.is_computed, node), parameters.values()))
        )
        if results:
            is_function, inside = True, inside if node.op in FUNCTIONS else []
        if inside and node.op in FUNCTIONS:
            is_function = self.has_others(inside[0], node.op, keys) or is_function
        if inside and not is_function:
            bias = [key.rpartition(".")[2] for key in keys.get("bias", ())]
            is_apart = node.op == "nn.Linear" and bool(bias) and "bias" not in bias
            layer, *after = take_bias_apart(node) if is_apart else [node]
            if node in self.scopes:
                self.scopes.update(dict.fromkeys((layer, *after), scope))
            self.plan.members[layer] = inside[0]
            yield from (layer, *after)
            return
        member = self.read_parameters(node, scope, parameters)
        bare = next((p[-1] for p in key_paths if p[-1] not in keys), None)
        if bare is None and member.startswith(PACKED):
            bare = member
        if node.op in FUNCTIONS and (is_function or bare is not None):
            yield from self.write_function(node, parameters, keys, bare)
            return
        if results:
            self.plan.members[node] = (*around, node.op[3:].lower())
            yield node
            return
        path = self.choose_path(node, scope, member, leaves)
        is_named = bool(key_paths or scope.parameters or member) or scope.is_call_of(node.op)
        is_named = is_named or all(self.folded.lacks((*around, name)) for name in parameters)
        if node.op in FUNCTIONS and self.keys and not is_named:
            call = to_function(node, operands_of(node)[0], [*parameters.values()])
            self.scopes[call] = scope
            yield call
            return
        self.plan.members[node] = path
        yield node

    def has_others(self, path: Path, op: str, keys: Mapping[str, list[str]]) -> bool:
        """Whether a module has more than the arrays of a layer, or is another layer's."""
        names = {name for name, listed in keys.items()
                 if listed or self.folded.lacks((*path, name))}  # fmt: skip
        # Of several layers that read an array one has it.
        kind = f"nn.{self.plan.classes.get(path, '').rpartition('.')[2]}"
        owner = self.owners.setdefault(path, kind if kind in FUNCTIONS else op)
        return owner != op or bool(self.contents.get(path, set()) - names)

    def choose_path(self, node: Node, scope: Scope, member: str, leaves: Counter[Path]) -> Path:
        """Where a layer is whose arrays tell nothing."""
        around = scope.path
        if not member and (scope.is_call_of(node.op) or (around and leaves[around] == 1)):
            return around
        return (*around, member or node.op[3:].lower())

    def is_computed(self, node: Node, value: Value) -> bool:
        """Whether an array of a layer is none of its module, but computed of some."""
        if self.wholes.read(value, node):
            return True
        scope = self.scopes.get(node)
        is_source = scope is not None and value not in self.origins and not self.keys_of(value)
        return is_source and bool(self.folded.read_expression(value, node, scope))  # type: ignore

    def parametrize(self, node: Node, path: Path) -> Node | None:
        """A module whose weight the exporter has computed, which computes it itself."""
        scheme = find_scheme(path, self.folded.unread)
        changed = None if scheme is None else parametrize(node, path, scheme)
        if changed is not None:
            self.plan.members[changed] = path
            if node in self.scopes:
                self.scopes[changed] = self.scopes[node]
        return changed

    def has_own_orientation(self, node: Node, parameters: Mapping[str, Value]) -> bool:
        """Whether a linear layer's weight is not transposed in its source."""
        if node.op != "nn.Linear":
            return False
        weight = parameters["weight"]
        base = self.origins.get(weight)
        if base is None or base.name_is_original:
            return base is not None and base.name in self.keys_of(weight)
        return is_turned_square(base, weight)

    def read_parameters(self, node: Node, scope: Scope, parameters: Mapping[str, Value]) -> str:
        """The module in the innermost one that a node's arrays are of, or what they begin with."""
        if len(scope.parameters) != len(parameters):
            return ""
        lead = flatten(scope.path)
        for name, text in zip(parameters, scope.parameters, strict=True):
            rest = text[2:].removeprefix(f"{lead}_") if lead else text[2:]
            if rest != text[2:] and rest.endswith(f"_{name}"):
                return rest if rest.startswith(PACKED) else rest.removesuffix(f"_{name}")
        return ""

    def find_array(self, scope: Scope, name: str) -> str | None:
        """What the innermost module calls the one array that ends with ``name``."""
        lead = f"p_{flatten(scope.path)}_" if scope.path else "p_"
        ends = [t for t in scope.parameters if t.endswith(f"_{name}") and t.startswith(lead)]
        return ends[0].removeprefix(lead) if len(ends) == 1 and PACKED not in ends[0] else None

    def write_function(
        self, node: Node, parameters: Mapping[str, Value], keys: Mapping[str, list[str]],
        bare: str | None,
    ) -> Iterator[Node]:  # fmt: skip
        """A module's function of arrays, which are members of their own."""
        scope = self.scopes.get(node, Scope((), {}))
        x = operands_of(node)[0]
        arrays: list[Value] = []
        lead = re.sub(r"(weight|bias)$", "", bare or "")
        for name, value in parameters.items():
            listed = keys[name]
            source_name = self.find_array(scope, name)
            array = source_name or f"{lead}{name}"
            path = tuple(listed[0].split(".")) if listed else (*scope.path, array)
            arrays.append(value)
            if steps := self.read_whole(value, node):
                arrays[-1] = steps[-1].outputs[0]
                yield from steps
            elif name == "weight" and self.has_own_orientation(node, parameters):
                base = self.origins[value]
                turned = Value(f"{value.name}.T", value.dtype, value.shape)
                turn = Node(".t", (base,), (turned,), {"args": (Slot(0),)}, "torch",
                            sources=node.sources)  # fmt: skip
                self.plan.arrays[base] = path
                self.scopes[turn] = scope
                arrays[-1] = turned
                yield turn
            elif listed or source_name or not self.keys:
                self.plan.arrays[value] = path
        call = to_function(node, x, arrays)
        self.scopes[call] = scope
        yield call

    def place_arrays(self) -> None:
        """Arrays that the source names are where it has them."""
        for at, node in enumerate(self.nodes):
            copies: dict[Value, Value] = {}
            for value in operands_of(node):
                if value is None or value.tensor is None:
                    continue
                keys = self.keys_of(value)
                if self.is_rearranged(value):  # trained as it is, under a name of its own
                    name, *_ = names_in(origins_of(value), 0, value.tensor.size)
                    if self.is_key(name, value):
                        self.plan.arrays.setdefault(value, tuple(f"{name}_rows".split(".")))
                base = self.origins.get(value, value)
                is_derived = not (base.name_is_original or is_whole(base) or not base.origins)
                if len(keys) != 1 or base.static_shape != value.static_shape or is_derived:
                    continue
                path = self.plan.arrays.get(value, tuple(keys[0].split(".")))
                apart = self.find_apart(node, value, path)
                if apart is not None:
                    copies[value] = copy = Value(value.name, value.dtype, value.shape, value.tensor)
                    copy.name_is_original = True
                    self.origins[copy], value, path = value, copy, apart
                self.plan.arrays[value] = path
                is_parameter = f"p_{flatten(path)}" in self.parameters or not self.parameters
                if value.type.kind != "f" or not is_parameter:
                    self.plan.buffers[value] = ".".join(path) in self.keys or not self.parameters
            if copies:
                inputs = tuple([copies.get(v, v) if v is not None else None for v in node.inputs])
                self.nodes[at] = changed = replace(node, inputs=inputs)
                self.scopes[changed] = self.scopes[node]
                if node in self.plan.members:
                    self.plan.members[changed] = self.plan.members.pop(node)

    def find_apart(self, node: Node, value: Value, path: Path) -> Path | None:
        """The place of an array of a module for which the exporter has one of another module.

        It has one array for all that have the same elements.
        """
        scope = self.scopes.get(node)
        if scope is None or scope.path[: len(path) - 1] == path[:-1]:
            return None
        path_in_scope = (*scope.path, path[-1])
        if self.parameters:
            return path_in_scope if f"p_{flatten(path_in_scope)}" in scope.parameters else None
        array = value.array()
        is_twin = value.type.kind != "f" and _without_numbers(path_in_scope) == _without_numbers(
            path
        )
        return path_in_scope if array.size and (is_twin or (array == array.flat[0]).all()) else None


def _without_numbers(path: Path) -> list[str]:
    return [name for name in path if not name.isdigit()]
