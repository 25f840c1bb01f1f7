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

from .folded_lines import RESULT, FoldedLines
from .line_expressions import Expression
from .scopes import Path, Scope

LOWERED = re.compile(r"val_\d+")  # what writing one call in ONNX computes: turned or reshaped
LOOKED_UP = re.compile(r"embedding(_\d+)?")  # a call of nn.Embedding, which is left with no node
RESHAPED = re.compile(r"(_unsafe_view|expand|reshape|slice|squeeze|unsqueeze|val|view)(_\d+)?")
REORDERED = re.compile(r"%(flip|gather|index|roll|take)\w*")  # operands of calls
# Calls that are written in ONNX with their arrays as they are, turned or in another shape.
PLAIN = re.compile(
    r"target=torch\.ops\.aten\.(linear|addmm|mm|bmm|matmul|convolution|conv\d\w*|"
    r"conv_transpose\d\w*|prelu|embedding|lstm|gru|rnn_\w+|"
    r"(_?native_)?(batch|group|layer|instance|rms)_norm\w*|_fused_rms_norm)\."
)
SCALED = re.compile(r"kwargs = \{[^}]*\b(alpha|beta)\b")
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
        self.rows: dict[str, dict[int, np.ndarray]] = {}  # type: ignore[type-arg]
        self.lines = FoldedLines(lambda path: self.lacks(path) or ".".join(path) in present)
        in_lines: dict[str, tuple[Scope, list[Value]]] = {}
        calls: dict[tuple[Path, str], dict[str, Value]] = {}
        texts: dict[tuple[Path, str], Scope] = {}
        for node in nodes if keys else ():
            scope = scopes.get(node)
            if scope is None:
                continue
            for name in scope.parameters:
                path, _, member = keys.get(name, "").rpartition(".")
                if member and path == ".".join(scope.path):
                    self.lines.enter_root(member, scope)
            for value in node.inputs:
                if value is not None and value.tensor is not None and value.type.kind in "fi":
                    name = self.name(value)
                    self.lines.enter(name, scope)
                    in_lines.setdefault(name, (scope, []))[1].append(value)
                    is_lowered = value.type.kind == "f" and LOWERED.fullmatch(name)
                    if scope.parameters and is_lowered:
                        calls.setdefault((scope.path, scope.text), {})[name] = value
                        texts[scope.path, scope.text] = scope
        for call, constants in calls.items():
            self.match_call(texts[call], constants)
        for name, (scope, values) in in_lines.items():
            self.match_line(name, scope, values)

    def name(self, value: Value) -> str:
        """What the exporter calls the array that a constant is, or has been derived from."""
        base = value
        while base in self.bases:
            base = self.bases[base]
        names = names_in(origins_of(value), 0, value.tensor.size if value.tensor else 0)
        return names[0] if len(names) == 1 else base.name

    def match_call(self, scope: Scope, constants: Mapping[str, Value]) -> None:
        """Let the constants of a call be its arrays that the file lacks, if there are as many.

        Other calls than these compute with what they read before it is added, or the like.
        """
        is_looked_up = scope.find_indexed() is not None
        if SCALED.search(scope.text) or not (PLAIN.search(scope.text) or is_looked_up):
            return
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

    def match_line(self, name: str, scope: Scope, values: list[Value]) -> None:
        """Let a constant that a line of the source copies, or reads a row of, be of its array."""
        expression = self.lines.find(name, scope)
        if expression is None:
            return
        key = ".".join((*scope.path, *expression.member))
        is_read_turned = expression.is_transposed() and all(map(self.is_turned_back, values))
        if (not expression.steps or is_read_turned) and key in self.unread:
            self.renamed.setdefault(name, key)
        elif expression.row is not None:
            rows = self.rows.setdefault(key, {})
            rows.setdefault(expression.row, expression.undo(values[0].array())[0])

    def is_turned_back(self, value: Value) -> bool:
        """Whether a matrix has been derived from one of the file with its axes turned."""
        base = self.bases.get(value)
        if base is None or value.rank != 2:
            return False
        return np.array_equal(value.array(), base.array().T)

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

    def list_reshaped(self, value: Value, scope: Scope) -> set[str]:
        """The keys of the arrays that a constant may be in another shape, by its reader's line."""
        is_reshaped = RESHAPED.fullmatch(self.name(value)) and not REORDERED.search(scope.text)
        return self.lines.list_reshaped(scope) if is_reshaped else set()

    def is_result(self, value: Value, scope: Scope) -> bool:
        """Whether a call reads a constant as what another call computes."""
        name = self.name(value)
        return name in scope.operands and RESULT.fullmatch(name) is not None

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
        named = [p for p in tables if re.search(rf"\b\w+\.{re.escape(p[-2])}\(", scope.line)]
        tables = named or tables
        return ".".join(tables[0]) if len(tables) == 1 else None

    def read_expression(self, value: Value, node: Node, scope: Scope) -> list[Node]:
        """The calls that compute a constant of an array of the innermost module, by its line."""
        name, tensor = self.name(value), value.tensor
        if tensor is None or value.type.kind not in "fi" or not RESULT.fullmatch(name):
            return []
        known = self.expressions.get(value)
        if known is None:
            expression = self.lines.find(name, scope)
            is_float = value.type.kind == "f"
            if expression is None or not expression.steps:
                return []
            if not is_float and not expression.is_moved():
                return []
            arrays = expression.undo(value.array())
            key = ".".join((*scope.path, *expression.member))
            if expression.row is not None:
                rows = self.rows.get(key, {})
                if sorted(rows) != [*range(len(rows))] or expression.row not in rows:
                    return []
                arrays[0] = np.stack([rows[at] for at in range(len(rows))])
            whole = self.find_whole(key, arrays[0])
            if whole is None:
                return []
            known = self.expressions[value] = key, expression, [Tensor.of(a) for a in arrays]
        key, expression, tensors = known
        x, nodes = self.wholes.get(key) or self.present[key], []
        for at, step in enumerate(expression.steps):
            shape = tensors[at + 1].shape if at + 1 < len(tensors) else tensor.shape
            result = Value(value.name, value.dtype, shape)
            args = (*step.args, *shape) if step.op == ".reshape" else step.args
            nodes.append(Node(step.op, (x,), (result,), {"args": args}, "torch",
                              sources=node.sources))  # fmt: skip
            x = result
        return nodes

    def find_whole(self, key: str, array: np.ndarray) -> Value | None:  # type: ignore[type-arg]
        """The array of the checkpoint that these numbers are of; None where they are not."""
        if not np.isfinite(array).all():
            return None
        present = self.present.get(key)
        if present is not None and present.tensor is not None:
            is_near = present.static_shape == array.shape and np.allclose(
                present.array(), array, rtol=1e-4, atol=1e-6)  # fmt: skip
            return present if is_near else None
        whole = self.wholes.setdefault(key, make_array(key, Tensor.of(array)))
        return whole if np.array_equal(whole.array(), array) else None


def make_array(key: str, tensor: Tensor) -> Value:
    """An array of the checkpoint whose numbers were computed."""
    value = Value(key, tensor.dtype, tensor.shape, tensor, name_is_original=True)
    value.origins = (Run((key,), tensor.size, 0, tensor.shape),)
    return value
