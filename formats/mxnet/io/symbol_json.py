"""Symbol JSON of every MXNet version, to a graph in the ``mxnet`` domain.

Layout (nnvm's saveload_json.cc and MXNet's legacy_json_util.cc): ``nodes`` with ``op``, ``name``,
``inputs`` of ``[node, output]`` or ``[node, output, version]``, and attributes as strings under
``attrs``, before 0.12 ``attr``, before 0.9 ``param`` with only annotations under ``attr``;
``heads`` like inputs; the version under ``attrs.mxnet_version``, absent before 0.9. Variables have
the op ``null``. The graph is the one MXNet itself loads: what no head needs is left out, the rest
is in the order of ``list_arguments``, and old files read like new ones.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from serde.errors import ConversionError, MalformedFile
from serde.io.sniff import HEAD
from serde.ir.graph import Graph, Node, Source, Value

from ..bind.declared import Declared, read_declared
from ..bind.op_names import canonical_name, output_names
from ..operators import describe
from ..rules import HIDDEN, Layer
from .magic import SYMBOL, refuse_other

Link = tuple[int, int]  # node, output
LINK_TYPES = ([int, int], [int, int, int])
Texts = dict[str, str]

# Versions as MXNet counts them: major * 10000 + minor * 100 + patch.
BEFORE, AUXILIARY_SINCE, ARGMAX_SINCE = 800, 900, 905  # BEFORE: of a file that names none
DEEPEST = 16  # subgraphs within subgraphs
MOST_OUTPUTS = 1 << 18  # that a file may claim beyond the first of each node
# Operators whose subgraph is a chain of layers, kept as the attribute ``layers``.
FUSED = frozenset(
    f"_sg_mkldnn_{op}" for op in ("conv", "fully_connected", "selfatt_qk", "selfatt_valatt")
)


class Symbol(NamedTuple):
    """A symbol: its graph, in which variables are inputs, and what each variable's node says.

    Where it ``has_numpy_shapes``, a size may be 0; otherwise 0 stands for one that is not known.
    """

    graph: Graph
    variables: Mapping[str, Declared]
    version: int
    has_numpy_shapes: bool = False


def parse_symbol(text: bytes | str, path: str = "symbol") -> Symbol:
    """Read symbol JSON; ``path`` is what errors call it.

    Raises:
        MalformedFile: with the JSON path where the file stops being a symbol.
    """
    data = text.encode() if isinstance(text, str) else text
    refuse_other(path, data[:HEAD], SYMBOL)
    try:
        raw = json.loads(data, object_pairs_hook=_require_unique_keys)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise MalformedFile(path, f"not symbol JSON: {error.msg}", place) from None
    except ValueError as error:  # no text, a number of endless digits, a key twice
        raise MalformedFile(path, f"not symbol JSON: {str(error)[:200]}") from None
    except RecursionError:
        raise MalformedFile(path, "not symbol JSON: it nests too deep") from None
    return _Parsing(path).symbol(raw, "$", 0, None)


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("an object has one key twice")
    return mapping


class _Entry(NamedTuple):
    """One node of the file."""

    op: str
    name: str
    attrs: Texts
    links: list[Link]
    bodies: list[Any]


class _Parsing:
    def __init__(self, path: str) -> None:
        self.path = path

    def fail(self, reason: str, place: str) -> MalformedFile:
        return MalformedFile(self.path, reason, place)

    def symbol(self, raw: Any, place: str, depth: int, outer: int | None) -> Symbol:
        """Read a symbol, or a subgraph of one of version ``outer``, which names none itself."""
        if not isinstance(raw, dict) or not isinstance(raw.get("nodes"), list):
            raise self.fail("not symbol JSON: it has no list of nodes", place)
        if depth > DEEPEST:
            raise self.fail(f"subgraphs nest more than {DEEPEST} deep", place)
        version = self.flag(raw, "mxnet_version", place, BEFORE if outer is None else outer)
        entries = list(self.entries(raw["nodes"], place, version))
        heads = self.links(raw.get("heads"), f"{place}.heads", len(entries))
        if not heads:
            raise self.fail("the symbol has no outputs", f"{place}.heads")
        order = self.order(entries, heads, place)
        counts = self.counts([heads, *(entries[i].links for i in order)], place)
        np_shape = self.flag(raw, "is_np_shape", place, 0) != 0
        graph = _Growing(version, counts)
        for index in order:
            entry, where = entries[index], f"{place}.nodes[{index}]"
            if entry.op == "null":
                if counts[index] > 1:
                    raise self.fail("a variable has one output, and another is read", where)
                value = graph.variable(entry.name, self.read_declared(entry.attrs, np_shape, where))
                graph.outputs[index, 0] = value
                continue
            bodies = [
                self.symbol(body, f"{where}.subgraphs[{n}]", depth + 1, version).graph
                for n, body in enumerate(entry.bodies)
            ]
            graph.node(index, entry, bodies)
        return Symbol(graph.build(heads), graph.variables, version, np_shape)

    def flag(self, raw: Mapping[str, Any], key: str, place: str, default: int) -> int:
        """A number among the symbol's own attributes, which are written ``["int", number]``."""
        attrs = raw.get("attrs")
        value = attrs.get(key) if isinstance(attrs, dict) else None
        if value is None:
            return default
        if not isinstance(value, list) or len(value) != 2 or type(value[1]) is not int:
            raise self.fail(f"{key} is not ['int', number]", f"{place}.attrs")
        return value[1]

    def read_declared(self, attrs: Texts, np_shape: bool, place: str) -> Declared:
        try:
            return read_declared(attrs, np_shape)
        except ConversionError as error:
            raise self.fail(f"__shape__ or __dtype__: {error}", place) from None

    def entries(self, nodes: list[Any], place: str, version: int) -> Iterator[_Entry]:
        used = {n["name"] for n in nodes if isinstance(n, dict) and isinstance(n.get("name"), str)}
        for index, node in enumerate(nodes):
            where = f"{place}.nodes[{index}]"
            if not isinstance(node, dict):
                raise self.fail("a node is not an object", where)
            op = self.word(node, "op", where)
            is_unnamed = node.get("name") == ""  # as C++ front ends leave them
            name = _new_name(op, index, used) if is_unnamed else self.word(node, "name", where)
            if op == "tvm_op":
                raise self.fail("a graph that TVM compiled, not a symbol", where)
            attrs: Texts = {}
            for key in ("param", "attr", "attrs"):
                raw_attrs = node.get(key)
                if raw_attrs and not isinstance(raw_attrs, dict):
                    raise self.fail(f"{key} is not an object", where)
                if raw_attrs:
                    attrs.update(_texts(raw_attrs))
            bodies = node.get("subgraphs") or []
            if not isinstance(bodies, list):
                raise self.fail("subgraphs is not a list", where)
            read = node.get("inputs")
            links = self.links(read, f"{where}.inputs", len(nodes)) if read else []
            yield _Entry(canonical_name(op, version), name, attrs, links, bodies)

    def word(self, node: Mapping[str, Any], key: str, place: str) -> str:
        value = node.get(key)
        if not isinstance(value, str) or not value:
            raise self.fail(f"a node has no {key}", place)
        try:
            return value if value.isascii() else value.encode().decode()
        except UnicodeEncodeError:
            raise self.fail(f"{key} {ascii(value)[:80]} is no text", place) from None

    def links(self, raw: Any, place: str, total: int) -> list[Link]:
        if not isinstance(raw, list):
            raise self.fail("is not a list of [node, output] pairs", place)
        links = []
        for link in raw:
            good = isinstance(link, list) and list(map(type, link)) in LINK_TYPES
            if not good or min(link) < 0:
                raise self.fail(f"{str(link)[:60]} is not a [node, output] pair", place)
            if link[0] >= total:
                raise self.fail(f"reads node {link[0]}, and there are {total}", place)
            links.append((link[0], link[1]))
        return links

    def order(self, entries: list[_Entry], heads: list[Link], place: str) -> list[int]:
        """Nodes the heads need, each behind what it reads; the order of nnvm's DFSVisit."""
        is_done: dict[int, bool] = {}  # False: what the node reads is being looked at
        indices: list[int] = []
        stack = [node for node, _ in reversed(heads)]
        while stack:
            index = stack[-1]
            if index in is_done:
                stack.pop()
                if not is_done[index]:
                    is_done[index] = True
                    indices.append(index)
                continue
            is_done[index] = False
            for node, _ in reversed(entries[index].links):
                if not is_done.get(node, True):
                    raise self.fail(
                        f"{entries[index].name!r} reads {entries[node].name!r}, which depends on "
                        "it: a cycle",
                        f"{place}.nodes[{index}]",
                    )
                if node not in is_done:
                    stack.append(node)
        return indices

    def counts(self, links: list[list[Link]], place: str) -> dict[int, int]:
        """How many outputs of each node are read."""
        counts: dict[int, int] = {}
        for some in links:
            for node, output in some:
                counts[node] = max(counts.get(node, 0), output + 1)
        if sum(n - 1 for n in counts.values()) > MOST_OUTPUTS:
            node = max(counts, key=counts.__getitem__)
            raise self.fail(f"output {counts[node] - 1} of node {node} is read", place)
        return counts


class _Growing:
    """The graph as far as it has been read."""

    def __init__(self, version: int, counts: Mapping[int, int]) -> None:
        self.version, self.counts = version, counts
        self.outputs: dict[Link, Value] = {}
        self.inputs: dict[str, Value] = {}
        self.variables: dict[str, Declared] = {}
        self.nodes: list[Node] = []

    def variable(self, name: str, about: Declared) -> Value:
        """The variable of that name: those that share one are bound to one array."""
        self.variables.setdefault(name, about)
        return self.inputs.setdefault(name, Value(name))

    def node(self, index: int, entry: _Entry, bodies: list[Graph]) -> None:
        op, name, attrs = entry.op, entry.name, _normalize_annotations(entry.attrs)
        operands = [self.outputs[link] for link in entry.links]
        states = describe(op).states
        if self.version < AUXILIARY_SINCE and len(operands) == min(states, default=-1):
            operands += [self.variable(f"{name}_{n}", Declared()) for n in states.values()]
        if self.version < ARGMAX_SINCE and op in ("argmax", "argmin") and attrs.get("axis") == "-1":
            del attrs["axis"]  # was the default, and meant none
        outputs = tuple(map(Value, output_names(op, name, attrs, self.counts[index])))
        for number, value in enumerate(outputs):
            self.outputs[index, number] = value
        full: dict[str, Any] = {**attrs, **{f"subgraph{n}": b for n, b in enumerate(bodies)}}
        if op in FUSED:
            chain = tuple(Layer(inner.op, inner.attrs) for body in bodies for inner in body.nodes)
            full = {**attrs, "layers": chain}
        self.nodes.append(
            Node(op, tuple(operands), outputs, MappingProxyType(full), "mxnet", name,
                 (Source("mxnet", op, name),))
        )  # fmt: skip

    def build(self, heads: list[Link]) -> Graph:
        outputs = tuple(self.outputs[link] for link in heads)
        return Graph("symbol", tuple(self.inputs.values()), outputs, tuple(self.nodes), "mxnet")


def _new_name(op: str, index: int, used: Container[str]) -> str:
    """A name for a node that has none, by its operator and position."""
    name = f"{'variable' if op == 'null' else op.lower().lstrip('_')}{index}"
    while name in used:
        name += "_"
    return name


def _texts(attrs: Mapping[str, Any]) -> Texts:
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in attrs.items()}


def _normalize_annotations(attrs: Mapping[str, str]) -> Texts:
    """``attrs`` with annotations spelled as today: ``__lr_mult__``.

    Old files also put those of a parameter on the node that reads it, as ``weight_lr_mult``: they
    concern training only, and are left out.
    """
    return {
        f"__{key}__" if key in HIDDEN else key: text
        for key, text in attrs.items()
        if not key.endswith(HIDDEN) or key in HIDDEN
    }
