"""Symbol JSON of every MXNet version, to a graph in the ``mxnet`` domain.

Layout (nnvm's saveload_json.cc and MXNet's legacy_json_util.cc): ``nodes`` with ``op``, ``name``,
``inputs`` of ``[node, output]`` or ``[node, output, version]``, and attributes as texts under ``attrs``,
``attr`` (annotations, before 0.9) or ``param`` (before 0.12); ``heads`` like inputs; the version under
``attrs.mxnet_version``, absent before 0.9. Variables have the op ``null``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from serde.content import refuse_mistaken
from serde.errors import MalformedFile
from serde.graph import Graph, Node, Source, Value

AUXILIARY_SINCE, ARGMAX_SINCE = (
    900,
    905,
)  # versions as MXNet counts: major*10000 + minor*100 + patch
BEFORE = 800  # the version of a file that names none
DEEPEST = 200  # levels of nesting in the JSON
# Variables that files older than 0.9 leave out, and outputs that bear a name of their own.
AUXILIARY = {
    "BatchNorm": ("moving_mean", "moving_var"),
    "IdentityAttachKLSparseReg": ("moving_avg",),
}
INPUTS_BEFORE_AUXILIARY = {"BatchNorm": 3, "IdentityAttachKLSparseReg": 1}
NAMED_OUTPUTS = {
    "BatchNorm": ("output", "mean", "var"),
    "LayerNorm": ("output", "mean", "std"),
    "RNN": ("output", "state", "state_cell"),
}


@dataclass(frozen=True)
class Symbol:
    """A symbol: its graph, in which variables are inputs, and what each variable's node says."""

    graph: Graph
    variables: Mapping[str, Mapping[str, str]]
    version: int


def parse_symbol(text: bytes | str, path: str = "symbol") -> Symbol:
    """Read symbol JSON; ``path`` is what errors call it.

    Raises:
        MalformedFile: with the JSON path where the file stops being a symbol.
    """
    data = text.encode() if isinstance(text, str) else text
    refuse_mistaken(path, data[:1024])
    try:
        raw = json.loads(data, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise MalformedFile(path, f"not symbol JSON: {error.msg}", place) from None
    except (_Twice, UnicodeDecodeError) as error:
        raise MalformedFile(path, f"not symbol JSON: {error}") from None
    except RecursionError:
        raise MalformedFile(path, "not symbol JSON: it nests too deep") from None
    return _Parsing(path).symbol(raw, "$", 0)


class _Twice(ValueError):
    """A JSON object has one key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice("an object has one key twice")
    return found


class _Parsing:
    def __init__(self, path: str) -> None:
        self.path = path

    def fail(self, reason: str, place: str) -> MalformedFile:
        return MalformedFile(self.path, reason, place)

    def symbol(self, raw: Any, place: str, depth: int) -> Symbol:
        if not isinstance(raw, dict) or not isinstance(raw.get("nodes"), list):
            raise self.fail("not symbol JSON: it has no list of nodes", place)
        if depth > 16:
            raise self.fail("subgraphs nest more than 16 deep", place)
        version = self.version(raw, place)
        entries = list(self.entries(raw, place))
        used = self.used(raw, entries, place)
        made: list[tuple[Value, ...]] = []
        inputs: list[Value] = []
        nodes: list[Node] = []
        variables: dict[str, Mapping[str, str]] = {}
        for index, (op, name, attrs, links, bodies) in enumerate(entries):
            where = f"{place}.nodes[{index}]"
            if op == "null":
                value = Value(name)
                variables[name] = MappingProxyType(attrs)
                inputs.append(value)
                made.append((value,))
                continue
            operands = [self.link(made, i, o, index, where) for i, o in links]
            if version < AUXILIARY_SINCE:
                operands += self.auxiliary(op, name, operands, inputs, variables)
            if version < ARGMAX_SINCE and op in ("argmax", "argmin") and attrs.get("axis") == "-1":
                del attrs["axis"]
            full: dict[str, Any] = dict(attrs)
            for number, body in enumerate(bodies):
                inner = self.symbol(body, f"{where}.subgraphs[{number}]", depth + 1)
                full[f"subgraph{number}"] = inner.graph
            outputs = tuple(map(Value, _output_names(op, name, used.get(index, 1))))
            nodes.append(
                Node(op, tuple(operands), outputs, MappingProxyType(full), "mxnet", name,
                     (Source("mxnet", op, name),))
            )  # fmt: skip
            made.append(outputs)
        heads = self.links(raw.get("heads"), f"{place}.heads")
        outputs = tuple(self.link(made, i, o, len(made), f"{place}.heads") for i, o in heads)
        if not outputs:
            raise self.fail("the symbol has no outputs", f"{place}.heads")
        graph = Graph("symbol", tuple(inputs), outputs, tuple(nodes), "mxnet")
        return Symbol(graph, variables, version)

    def version(self, raw: Mapping[str, Any], place: str) -> int:
        attrs = raw.get("attrs", {})
        found = attrs.get("mxnet_version") if isinstance(attrs, dict) else None
        if isinstance(found, list) and len(found) == 2 and isinstance(found[1], int):
            return found[1]
        if found is not None:
            raise self.fail(f"the version {found!r} is not ['int', number]", f"{place}.attrs")
        return BEFORE

    def entries(self, raw: Mapping[str, Any], place: str) -> Iterator[tuple[Any, ...]]:
        for index, node in enumerate(raw["nodes"]):
            where = f"{place}.nodes[{index}]"
            if not isinstance(node, dict):
                raise self.fail("a node is not an object", where)
            op, name = node.get("op"), node.get("name")
            if not isinstance(op, str) or not isinstance(name, str):
                raise self.fail("a node has no op or no name", where)
            attrs: dict[str, str] = {}
            for key in ("param", "attr", "attrs"):
                given = node.get(key) or {}
                if not isinstance(given, dict):
                    raise self.fail(f"{key} is not an object", where)
                attrs.update(
                    (k, v if isinstance(v, str) else json.dumps(v)) for k, v in given.items()
                )
            bodies = node.get("subgraphs") or []
            if not isinstance(bodies, list):
                raise self.fail("subgraphs is not a list", where)
            links = () if op == "null" else self.links(node.get("inputs"), f"{where}.inputs")
            yield op, name, attrs, links, bodies

    def links(self, raw: Any, place: str) -> list[tuple[int, int]]:
        if not isinstance(raw, list):
            raise self.fail("is not a list of [node, output] pairs", place)
        found = []
        for link in raw:
            good = isinstance(link, list) and 2 <= len(link) <= 3
            if not good or any(type(n) is not int or n < 0 for n in link):
                raise self.fail(f"{str(link)[:60]} is not a [node, output] pair", place)
            found.append((link[0], link[1]))
        return found

    def used(self, raw: Any, entries: Any, place: str) -> dict[int, int]:
        """How many outputs of each node are read, by index."""
        count: dict[int, int] = {}
        heads = self.links(raw.get("heads"), f"{place}.heads")
        for links in (*(e[3] for e in entries), heads):
            for node, output in links:
                if output > 65_535:
                    raise self.fail(f"reads output {output} of node {node}", place)
                count[node] = max(count.get(node, 1), output + 1)
        return count

    def link(self, made: Any, node: int, output: int, index: int, place: str) -> Value:
        if node >= index or node >= len(made):
            there = "itself or a later node" if node >= index else "no node"
            raise self.fail(f"reads node {node}, {there}: a cycle or a damaged file", place)
        if output >= len(made[node]):
            raise self.fail(f"reads output {output} of node {node}, which has one", place)
        return made[node][output]  # type: ignore[no-any-return]

    def auxiliary(
        self, op: str, name: str, operands: Any, inputs: Any, variables: Any
    ) -> list[Value]:
        """The auxiliary variables of an operator, which files before 0.9 leave out."""
        wanted = AUXILIARY.get(op, ())
        if not wanted or len(operands) != INPUTS_BEFORE_AUXILIARY[op]:
            return []
        added = [Value(f"{name}_{a}") for a in wanted]
        inputs.extend(added)
        variables.update((v.name, {}) for v in added)
        return added


def _output_names(op: str, name: str, count: int) -> list[str]:
    """What MXNet's ``list_outputs`` calls the outputs."""
    if op in NAMED_OUTPUTS:
        return [f"{name}_{n}" for n in NAMED_OUTPUTS[op]][:count]
    return [f"{name}_output"] if count == 1 else [f"{name}_output{i}" for i in range(count)]
