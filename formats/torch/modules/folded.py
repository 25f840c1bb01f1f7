"""Arrays of a checkpoint that PyTorch's exporter has replaced by what it computed of them.

Its files list all keys of the checkpoint. One whose array they lack is found again where what an
exporter writes of the reader leaves no doubt: the arrays of the call that it was written for, or
the line of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from serde.ir.graph import Node, Run, Tensor, Value
from serde.spec.weight_origins import names_in, origins_of

from .line_expressions import Expression, find_expressions
from .scopes import Path, Scope

LOWERED = re.compile(r"val_\d+")  # what writing one call in ONNX computes: turned or reshaped
LOOKED_UP = re.compile(r"embedding(_\d+)?")  # a call of nn.Embedding, which is left with no node
RESULT = re.compile(r"[a-zA-Z]+(_\d+)?")  # of a call
VECTORS = re.compile(r"target=torch\.ops\.aten\.\w*(norm|prelu)\w*\.")  # calls that take vectors


class FoldedArrays:
    """Which arrays the file lacks, and the constants that stand for them.

    ``keys`` are those of the checkpoint by the exporter's names, ``present`` the arrays of the
    file; ``bases`` tells what a constant has been derived from.
    """

    def __init__(
        self, nodes: Iterable[Node], scopes: Mapping[Node, Scope], bases: Mapping[Value, Value],
        keys: Mapping[str, str], present: Mapping[str, Value],
    ) -> None:  # fmt: skip
        self.bases, self.keys, self.present = bases, keys, present
        read = {name for scope in scopes.values() for name in scope.parameters}
        self.unread = {key for name, key in keys.items() if name not in read} - present.keys()
        self.modules = {path for scope in scopes.values() for path in scope.modules}
        self.renamed: dict[str, str] = {}  # keys of constants by what the exporter calls them
        self.expressions: dict[Value, tuple[str, Expression, list[Tensor]]] = {}
        self.wholes: dict[str, Value] = {}  # arrays by key, as the lines of readers tell them
        calls: dict[tuple[Path, str], dict[str, Value]] = {}
        texts: dict[tuple[Path, str], Scope] = {}
        for node in nodes if keys else ():
            scope = scopes.get(node)
            if scope is None or not scope.parameters:
                continue
            for value in node.inputs:
                if value is not None and value.tensor is not None and value.type.kind == "f":
                    name = self.name(value)
                    if LOWERED.fullmatch(name):
                        calls.setdefault((scope.path, scope.text), {})[name] = value
                        texts[scope.path, scope.text] = scope
        for call, constants in calls.items():
            self.match_call(texts[call], constants)

    def name(self, value: Value) -> str:
        """What the exporter calls the array that a constant is, or has been derived from."""
        base = value
        while base in self.bases:
            base = self.bases[base]
        names = names_in(origins_of(value), 0, value.tensor.size if value.tensor else 0)
        return names[0] if len(names) == 1 else base.name

    def match_call(self, scope: Scope, constants: Mapping[str, Value]) -> None:
        """Let the constants of a call be its arrays that the file lacks, if there are as many."""
        names = [name for name in dict.fromkeys(scope.parameters) if name in self.keys]
        keys = [self.keys[name] for name in names]
        absent = [n for n in names if self.keys[n] not in self.present]
        for some in (absent, [name for name in absent if name.startswith("p_")]):
            if len(some) == len(constants):
                self.renamed.update(zip(constants, map(self.keys.__getitem__, some), strict=True))
                return
        for name, value in constants.items():  # one that is there too is there as it is read
            twins = [key for key in keys if self.is_turned(value, self.present.get(key))]
            if len(twins) == 1:
                self.renamed[name] = twins[0]

    def is_turned(self, value: Value, array: Value | None) -> bool:
        """Whether a constant is a matrix, or that with its axes turned."""
        if array is None or array.tensor is None or value.type is not array.type:
            return False
        forms = (array.array(), array.array().T)
        return any(np.array_equal(value.array(), form) for form in forms)

    def lacks(self, path: Path) -> bool:
        """Whether an array is one that the exporter has computed others of."""
        return ".".join(path) in self.unread

    def is_vector(self, scope: Scope) -> bool:
        """Whether the arrays of a call are vectors, whatever axes the exporter gives them."""
        return VECTORS.search(scope.text) is not None

    def find_table(self, value: Value, scope: Scope) -> str | None:
        """The key of the table whose rows, one behind another, a constant is."""
        if not LOOKED_UP.fullmatch(self.name(value)) or value.rank < 2 or value.type.kind != "f":
            return None
        *outer, rows, _ = value.static_shape
        table = value.array().reshape(-1, value.static_shape[-1])
        if {*outer} - {1} or len(np.unique(table, axis=0)) < rows:
            return None
        paths = [tuple(key.split(".")) for key in self.unread if key.endswith(".weight")]
        tables = [p for p in paths if p[:-2] == scope.path and p[:-1] not in self.modules]
        named = [p for p in tables if re.search(rf"\bself\.{re.escape(p[-2])}\(", scope.line)]
        tables = named or tables
        return ".".join(tables[0]) if len(tables) == 1 else None

    def read_expression(self, value: Value, node: Node, scope: Scope) -> list[Node]:
        """The calls that compute a constant of an array of the innermost module, by its line."""
        name, tensor = self.name(value), value.tensor
        if tensor is None or value.type.kind not in "fi" or not RESULT.fullmatch(name):
            return []
        known = self.expressions.get(value)
        if known is None:
            matches = [e for e in find_expressions(scope.line)
                       if e.computes(name) and self.lacks((*scope.path, *e.member))]  # fmt: skip
            is_float = value.type.kind == "f"
            if len(matches) != 1 or not (is_float or matches[0].is_moved()):
                return []
            arrays = matches[0].undo(value.array())
            if not all(np.isfinite(array).all() for array in arrays):
                return []
            key = ".".join((*scope.path, *matches[0].member))
            whole = self.wholes.setdefault(key, make_array(key, Tensor.of(arrays[0])))
            if not np.array_equal(whole.array(), arrays[0]):
                return []
            known = self.expressions[value] = key, matches[0], [Tensor.of(a) for a in arrays]
        key, expression, tensors = known
        x, nodes = self.wholes[key], []
        for at, step in enumerate(expression.steps):
            shape = tensors[at + 1].shape if at + 1 < len(tensors) else tensor.shape
            result = Value(value.name, value.dtype, shape)
            nodes.append(Node(step.op, (x,), (result,), {"args": step.args}, "torch",
                              sources=node.sources))  # fmt: skip
            x = result
        return nodes


def make_array(key: str, tensor: Tensor) -> Value:
    """An array of the checkpoint whose numbers were computed."""
    value = Value(key, tensor.dtype, tensor.shape, tensor, name_is_original=True)
    value.origins = (Run((key,), tensor.size, 0, tensor.shape),)
    return value
