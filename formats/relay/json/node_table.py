"""The node table of ``tvm.ir.save_json``: objects by number, each naming the objects it refers to.

``{"root": 1, "nodes": […], "b64ndarrays": […], "attrs": {"tvm_version": "0.17.0"}}``. Node 0 is
null. A node has a ``type_key`` and a string (``repr_str``, ``repr_b64``; 0.6: ``global_key``),
items (``data``, with ``keys`` for maps with string keys) or ``attrs``, all of which are strings:
strings and numbers in place, or the index of a node, depending on the type of the object.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

from serde.errors import MalformedFile
from serde.ir.graph import Tensor

from .. import ndarray
from ..ast import Expr

DEPTH = 200  # how deep types, patterns and attributes may nest
WEIGHT = 1_000_000  # nodes in one of them, shared parts counted as often as they occur

NEW, OPEN, DONE = range(3)
Attributes = dict[str, str]
NO_ATTRIBUTES: Attributes = {}
TEXT = {str}


class Table:
    """A parsed node table and the objects decoded from it so far."""

    def __init__(self, text: str | bytes, path: str) -> None:
        self.path = path
        data = self._load(text)
        self.nodes: list[dict[str, Any]] = data["nodes"]
        self.root = self.index(data.get("root", 0), "the root")
        self.blobs: list[Any] = data.get("b64ndarrays", [])
        version = data.get("attrs", {}).get("tvm_version", "")
        self.tvm = version if isinstance(version, str) else ""
        self.version = _parse_version(self.tvm)
        self._tensors: dict[int, Tensor] = {}
        self._keys: list[str] = [_RENAMED.get(n["type_key"], n["type_key"]) for n in self.nodes]
        count = len(self.nodes)
        self._state = bytearray(count)
        self._values: list[Any] = [None] * count
        self._depth = [0] * count
        self._weight = [0] * count
        self._state[0] = DONE

    def _load(self, text: str | bytes) -> dict[str, Any]:
        try:
            data = json.loads(text)
        except RecursionError:
            raise MalformedFile(self.path, "JSON nested deeper than TVM ever writes it") from None
        except UnicodeDecodeError as error:
            raise MalformedFile(self.path, "not UTF-8", f"byte {error.start}") from None
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise MalformedFile(self.path, f"not JSON: {error.msg}", place) from None
        except ValueError as error:  # a number of thousands of digits
            raise MalformedFile(self.path, f"not JSON: {error}") from None
        if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
            raise MalformedFile(self.path, "not a JSON file of TVM: it has no list of nodes")
        if not isinstance(data.get("b64ndarrays", []), list):
            raise MalformedFile(self.path, "b64ndarrays is not a list")
        if not isinstance(data.get("attrs", {}), dict):
            raise MalformedFile(self.path, "attrs is not an object")
        for number, node in enumerate(data["nodes"]):
            if not isinstance(node, dict) or not isinstance(node.get("type_key"), str):
                raise MalformedFile(self.path, "a node without a type_key", f"node {number}")
            attrs = node.get("attrs", NO_ATTRIBUTES)
            if not isinstance(attrs, dict) or not TEXT.issuperset(map(type, attrs.values())):
                reason = "its attrs are not an object of strings"
                raise MalformedFile(self.path, reason, f"node {number}")
        if not data["nodes"] or data["nodes"][0]["type_key"] != "":
            raise MalformedFile(self.path, "the first node is not null", "node 0")
        return data

    def error(self, number: int, reason: str) -> MalformedFile:
        """The error to raise about one node."""
        key = self.nodes[number]["type_key"]
        return MalformedFile(self.path, reason, f"node {number} ({key})")

    def index(self, value: Any, what: str, number: int = 0) -> int:
        """The node number written as ``value``."""
        if type(value) is str and len(value) < 20 and value.isdecimal():
            value = int(value)
        if value == "null":
            return 0
        if type(value) is not int or not 0 <= value < len(self.nodes):
            raise self.error(number, f"{what} is no node: {str(value)[:40]!r}")
        return value

    def key(self, number: int) -> str:
        """The type of a node, by its name in TVM 0.7 and later."""
        return self._keys[number]

    def attributes(self, number: int) -> Attributes:
        """The attributes of a node."""
        attrs: Attributes = self.nodes[number].get("attrs", NO_ATTRIBUTES)
        return attrs

    def items(self, number: int) -> list[int]:
        """The nodes an array or a map lists."""
        data = self.nodes[number].get("data", [])
        if not isinstance(data, list):
            raise self.error(number, "data is not a list")
        return [self.index(i, "an item", number) for i in data]

    def keys(self, number: int) -> list[str] | None:
        """The keys of a map with string keys."""
        keys = self.nodes[number].get("keys")
        if keys is None:
            return None
        if not isinstance(keys, list) or not all(isinstance(k, str) for k in keys):
            raise self.error(number, "keys is not a list of strings")
        return keys

    def text(self, number: int) -> str:
        """The string that a node is."""
        node = self.nodes[number]
        if "repr_b64" in node:
            return self._decode_base64(number, node["repr_b64"])
        text = node.get("repr_str", node.get("global_key", ""))
        if not isinstance(text, str):
            raise self.error(number, "its text is not a string")
        if not text.isascii():  # half of a surrogate pair is no character
            text = text.encode("utf-8", "backslashreplace").decode()
        return text

    def _decode_base64(self, number: int, text: Any) -> str:
        try:
            raw = base64.b64decode(text, validate=True)
            (length,) = struct.unpack_from("<Q", raw)
            return raw[8 : 8 + length].decode("utf-8", "backslashreplace")
        except (binascii.Error, ValueError, TypeError, struct.error):
            raise self.error(number, "repr_b64 holds no text") from None

    def string(self, number: int, name: str, attrs: Attributes) -> str:
        """A string attribute: in place, as in TVM 0.6, or in its own node."""
        value = attrs.get(name)
        if value is None:
            raise self.error(number, f"it has no {name}")
        if value.isascii() and value.isdigit() and len(value) < 20:
            at = int(value)
            if at < len(self.nodes) and self.key(at) == "runtime.String":
                return self.text(at)
        return value

    def integer(self, number: int, name: str, attrs: Attributes, default: int = 0) -> int:
        """An integer in place."""
        value = attrs.get(name)
        if value is None:
            return default
        try:
            if len(value) < 30:
                return int(value)
        except ValueError:
            pass
        raise self.error(number, f"{name} is no integer: {value[:40]!r}")

    def number(self, number: int, name: str, attrs: Attributes) -> float:
        """A float in place."""
        try:
            return float(attrs[name])
        except KeyError:
            raise self.error(number, f"it has no {name}") from None
        except ValueError:
            raise self.error(number, f"{name} is no number: {attrs[name][:40]!r}") from None

    def tensor(self, number: int, attrs: Attributes) -> Tensor:
        """The tensor a constant's ``data`` names."""
        at = self.integer(number, "data", attrs, -1)
        if not 0 <= at < len(self.blobs):
            raise self.error(number, f"its tensor is number {at} of {len(self.blobs)}")
        if at not in self._tensors:
            blob = self.blobs[at]
            try:
                if not isinstance(blob, str):
                    raise ndarray.BlobError("it is not base64 text")
                self._tensors[at] = ndarray.from_base64(blob)
            except ndarray.BlobError as error:
                raise MalformedFile(self.path, str(error), f"b64ndarrays[{at}]") from None
        return self._tensors[at]

    def decode(
        self,
        root: int,
        references: Callable[[int], Sequence[int]],
        build: Callable[[int, list[Any]], Any],
    ) -> Any:
        """The object of node ``root``: ``build(node, objects)`` from those ``references`` names."""
        state, values = self._state, self._values
        inside: dict[int, Sequence[int]] = {}
        stack = [root]
        while stack:
            at = stack[-1]
            if state[at] == DONE:
                stack.pop()
                continue
            if state[at] == NEW:
                state[at] = OPEN
                inside[at] = children = references(at)
                missing = [i for i in children if state[i] != DONE]
                if any(state[i] == OPEN for i in missing):
                    raise self.error(at, "it is a part of itself")
                if missing:
                    stack.extend(reversed(missing))
                    continue
            children = inside.pop(at)
            values[at] = build(at, [values[i] for i in children])
            self._check_nesting(at, children)
            state[at] = DONE
            stack.pop()
        return values[root]

    def _check_nesting(self, at: int, inside: Sequence[int]) -> None:
        """Bound the depth of what is walked by recursion: all but expressions."""
        if isinstance(self._values[at], Expr):
            return
        depth = weight = 1
        for i in inside:
            weight += self._weight[i]
            if self._depth[i] >= depth:
                depth = self._depth[i] + 1
        if depth > DEPTH:
            raise self.error(at, f"types or attributes nest more than {DEPTH} deep")
        if weight > WEIGHT:
            raise self.error(at, f"a type or attribute of more than {WEIGHT} parts")
        self._depth[at], self._weight[at] = depth, weight


def _parse_version(text: str) -> tuple[int, int]:
    """``0.6.1`` as (0, 6); the newest release for anything else."""
    numbers = [int(n) for n in text.split(".")[:2] if n.isascii() and n.isdigit() and len(n) < 9]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 19)


# TVM 0.6 → 0.7
_RENAMED = {
    **{
        f"relay.{name}": name
        for name in "Op TypeVar GlobalTypeVar TupleType FuncType TypeCall IncompleteType "
        "TypeRelation GlobalVar SourceName Span".split()
    },
    **{n: f"tir.{n}" for n in "Add Sub Mul Div Mod FloorDiv FloorMod Min Max".split()},
    "relay.Module": "IRModule",
    "StrMap": "Map",
    "Any": "tir.Any",
    "Variable": "tir.Var",
    "SizeVar": "tir.SizeVar",
    "StringImm": "tir.StringImm",
    "UIntImm": "IntImm",
}
