"""Operators that change their operands, as operators that do not.

In the form of ``torch.export`` before decomposition a node may write to a tensor, which others are
views of. A write gives the tensor a new value of the graph; a write to a view gives one to what it
is a view of, and a view whose tensor has changed is derived again when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from serde.errors import ConversionError
from serde.ir.budget import NODES
from serde.ir.graph import Node, Source, Value

from .operands import Operand
from .strides import Layout

VIEWS = frozenset(
    "view select.int slice.Tensor transpose.int permute unsqueeze squeeze squeeze.dim squeeze.dims"
    " expand expand_as t numpy_T unbind.int split.Tensor split_with_sizes split.sizes chunk"
    " diagonal alias detach narrow view_as movedim.int movedim.intlist unfold as_strided"
    " unflatten.int swapaxes swapdims mT mH adjoint matrix_H moveaxis.int moveaxis.intlist real"
    " imag view_as_real view_as_complex broadcast_to tensor_split.sections tensor_split.indices"
    " hsplit.int hsplit.array vsplit.int vsplit.array dsplit.int dsplit.array dropout"
    " atleast_1d atleast_2d atleast_3d".split()
)
MAY_VIEW = frozenset(
    "reshape flatten.using_ints contiguous to.dtype to.device to.dtype_layout reshape_as type_as"
    " ravel".split()
)
RESHAPES = frozenset("view unsqueeze squeeze squeeze.dim squeeze.dims view_as unflatten.int reshape"
                     " flatten.using_ints reshape_as ravel atleast_1d atleast_2d"
                     " atleast_3d".split())  # fmt: skip
SCATTERS = {"select.int": "select_scatter", "slice.Tensor": "slice_scatter",
            "diagonal": "diagonal_scatter"}  # fmt: skip
SAME = frozenset(
    "alias detach contiguous to.dtype to.device to.dtype_layout type_as dropout".split()
)
SWAPS = frozenset("transpose.int t numpy_T swapaxes swapdims mT mH adjoint matrix_H".split())
INPLACE = {f"__i{name}__": f"__{name}__" for name in ("and", "or", "xor", "lshift", "rshift")}
PARTS = frozenset(
    "chunk split.Tensor split_with_sizes split.sizes tensor_split.sections tensor_split.indices"
    " unbind.int hsplit.int hsplit.array vsplit.int vsplit.array dsplit.int dsplit.array".split()
)
MOVES = frozenset("movedim.int movedim.intlist moveaxis.int moveaxis.intlist".split())
OTHERWISE = {"zero_": "zeros_like", "fill_": "fill", "copy_": "copy", **INPLACE}
RESHAPING = frozenset("resize_ set_ as_strided_ resize_as_".split())
TURNING = {
    **{f"{op}_": op for op in ("unsqueeze", "squeeze", "t", "swapaxes", "swapdims")},
    "transpose_": "transpose.int", "squeeze_.dim": "squeeze.dim", "squeeze_.dims": "squeeze.dims",
}  # fmt: skip


@dataclass
class _Cell:
    """A tensor of the program: its value now, and what it is a view of."""

    name: str
    value: Value
    base: _Cell | None = None
    node: Node | None = None
    place: int = 0  # among the outputs of the node
    is_certain: bool = True  # that it is a view
    writes: int = 0  # to it, where it is no view
    version: int = field(init=False)  # the writes when the value was derived

    def __post_init__(self) -> None:
        self.root: _Cell = self.base.root if self.base else self
        self.version = self.root.writes


class Functionalizer:
    """Collects nodes, none of which changes an operand."""

    def __init__(self, layout: Callable[[str], Layout]) -> None:
        self.layout = layout
        self.nodes: list[Node] = []
        self.cells: dict[str, _Cell] = {}
        self.count = 0  # of the nodes that were added
        self.named: set[Value] = set()

    def enter(self, name: str, value: Value) -> None:
        """Let ``name`` have a value."""
        self.cells[name] = _Cell(name, value)

    def read(self, name: str) -> Value:
        """The value of a tensor now."""
        return self._derive(self.cells[name])

    def enter_stored(self, name: str, stored: str, op: str) -> int:
        """Let ``stored`` be a tensor with its axes as its elements lie in memory.

        Returns the place of the first.

        Raises:
            ConversionError: where other elements lie between them.
        """
        layout = self.layout(name)
        order = layout.sort_axes()
        if order is None or layout.start is None:
            raise ConversionError(
                f"{op} of {name!r}, of which the elements do not lie side by side in memory: call "
                "contiguous() on it, and give the strides of that"
            )
        value, attrs = self.read(name), {"self": Operand(0, False), "dims": tuple(order)}
        shape = None if value.shape is None else tuple(value.shape[axis] for axis in order)
        result = Value(stored, value.dtype, shape)
        self.add(Node("permute", (value,), (result,), attrs, "aten"), [("self", name)], [stored])
        return layout.start

    def _derive(self, cell: _Cell) -> Value:
        """The value of a tensor, derived again as far as what it is a view of has changed."""
        changed, last = [], cell
        while last.base and last.version != last.root.writes:
            changed.append(last)
            last = last.base
        value = last.value
        for each in reversed(changed):
            if not each.is_certain:
                raise ConversionError(
                    f"{each.name!r} may share its memory with a tensor that is written to: "
                    "clone it before the write"
                )
            node = each.node
            assert node is not None
            outputs = tuple(Value(v.name, v.dtype, v.shape) for v in node.outputs)
            self.nodes.append(replace(node, inputs=(value, *node.inputs[1:]), outputs=outputs))
            each.value = value = outputs[each.place]
            each.version = each.root.writes
        return value

    def is_written(self, name: str) -> bool:
        """Whether a tensor that was entered has changed."""
        return name in self.cells and self.cells[name].root.writes > 0

    def add(
        self, node: Node, arguments: Sequence[tuple[str, str | None]], names: Sequence[str]
    ) -> None:
        """Append a node; ``arguments`` are those of the operator, and the tensors they name."""
        self.count += 1
        if len(self.nodes) > NODES.of(self.count):
            raise ConversionError(
                "its writes to views, and reads of them, come to a graph out of proportion to the "
                "program: clone views before the writes"
            )
        stem = node.op.partition(".")[0]
        first = arguments[0][1] if arguments else None
        is_inplace = stem in INPLACE or (stem.endswith("_") and not stem.endswith("__"))
        if is_inplace and first is not None:
            self._add_inplace(node, first, names)
            return
        if any(key == "out" for key, _ in arguments):
            raise ConversionError(f"{node.op} writes to out=: let it return its result")
        writes = _training_writes(node, dict(arguments))
        extra = [Value(f"{n}.written", v.dtype, v.shape) for n, v in
                 ((n, self.cells[n].value) for n in writes)]  # fmt: skip
        outputs = node.outputs
        if extra:
            node = replace(node, outputs=(*_pad(outputs, node), *extra))
        self.nodes.append(node)
        for place, (name, value) in enumerate(zip(names, outputs, strict=True)):
            self.enter(name, value)
            if first is not None and (is_certain := self._is_view(node, first, name)) is not None:
                base = self.cells[first]
                self.cells[name] = _Cell(name, value, base, node, place, is_certain)
        for name, value in zip(writes, extra, strict=True):
            self._write(name, value, node.sources)

    def _is_view(self, node: Node, base: str, name: str) -> bool | None:
        """Whether the result shares memory with the operand; None where it does not."""
        op = node.op
        if op in VIEWS:
            return None if node.attrs.get("train") else True
        if op not in MAY_VIEW:
            return None
        old, new = self.cells[base].value, self.cells[name].value
        is_base_packed = self.layout(base).is_packed
        if op.startswith(("to.", "type_as")):
            is_copied = old.dtype is not new.dtype or node.attrs.get("copy") is True
            return None if is_copied else bool(is_base_packed)
        is_result_packed = self.layout(name).is_packed
        if is_result_packed is False:
            return True  # copies lie in order
        return None if is_result_packed and is_base_packed is False else bool(is_base_packed)

    def _add_inplace(self, node: Node, name: str, names: Sequence[str]) -> None:
        stem, dot, overload = node.op.partition(".")
        if node.op in RESHAPING or stem in RESHAPING:
            raise ConversionError(f"{node.op} changes a shape in place: use {stem[:-1]}")
        if node.op in TURNING:
            self._turn(replace(node, op=TURNING[node.op]), name, names)
            return
        old = self.read(name)
        result = Value(f"{old.name}.new", old.dtype, None)
        op = OTHERWISE.get(stem, stem[:-1])
        self.nodes.append(replace(node, op=f"{op}{dot}{overload}", outputs=(result,)))
        value = node.outputs[0] if node.outputs else Value(f"{old.name}.written")
        value.dtype, value.shape = old.dtype, old.shape
        self._emit("copy", (old, result), {"self": Operand(0, False), "src": Operand(1, False)},
                   value, node.sources)  # fmt: skip
        self._write(name, value, node.sources)
        self.cells.update(dict.fromkeys(names, self.cells[name]))  # the result is the tensor

    def _turn(self, node: Node, name: str, names: Sequence[str]) -> None:
        """Let a tensor be a view of what it was, in another shape."""
        self.nodes.append(node)
        view = _Cell(name, node.outputs[0], self.cells[name], node)
        self.cells.update(dict.fromkeys((name, *names), view))

    def _emit(
        self, op: str, inputs: tuple[Value, ...], attrs: Mapping[str, Any], output: Value,
        sources: tuple[Source, ...],
    ) -> Value:  # fmt: skip
        self.nodes.append(Node(op, inputs, (output,), attrs, "aten", output.name, sources))
        return output

    def _write(self, name: str, value: Value, sources: tuple[Source, ...]) -> None:
        """Let a tensor, and what it is a view of, have a new value."""
        cell = self.cells[name]
        views = []
        while cell.base:
            if not cell.is_certain:
                raise ConversionError(f"{cell.name!r} may be a copy or a view where it is written "
                                      "to: clone it before the write")  # fmt: skip
            views.append((cell, value))
            value = self._invert(cell, self._derive(cell.base), value, sources)
            cell = cell.base
        cell.writes += 1
        cell.value = value
        for view, written in views:
            view.value, view.version = written, cell.writes

    def _invert(self, cell: _Cell, base: Value, value: Value, sources: tuple[Source, ...]) -> Value:
        """What a tensor becomes where a view of it is written to."""
        node = cell.node
        assert node is not None
        result = Value(f"{base.name}.written", base.dtype, base.shape)
        if node.op in SAME:
            return value
        if node.op in SCATTERS:
            attrs = {
                **node.attrs,
                "self": Operand(0, False),
                "src": Operand(len(node.inputs), False),
            }
            inputs = (base, *[v for v in node.inputs[1:] if v is not None], value)
            return self._emit(SCATTERS[node.op], inputs, attrs, result, sources)
        if node.op in RESHAPES:
            attrs = {"self": Operand(0, False), "other": Operand(1, False)}
            return self._emit("view_as", (value, base), attrs, result, sources)
        if node.op in SWAPS:
            return self._emit(node.op, (value,), node.attrs, result, sources)
        if node.op == "permute":
            dims = [d % len(node.attrs["dims"]) for d in node.attrs["dims"]]  # type: ignore[arg-type, union-attr, operator]
            attrs = {**node.attrs, "dims": tuple(sorted(range(len(dims)), key=dims.__getitem__))}
            return self._emit("permute", (value,), attrs, result, sources)
        if node.op in PARTS:
            return self._write_part(cell, base, value, result)
        if node.op in MOVES:
            back = {"source": node.attrs["destination"], "destination": node.attrs["source"]}
            return self._emit(node.op, (value,), {**node.attrs, **back}, result, sources)
        raise ConversionError(f"a write to what {node.op} gives: clone it before the write")

    def _write_part(self, cell: _Cell, base: Value, value: Value, result: Value) -> Value:
        """A tensor that was cut, one of its parts replaced."""
        node = cell.node
        assert node is not None
        dim: Any = node.attrs.get("dim", 0)
        if cut := re.match("([vhd])split", node.op):
            dim = 0 if base.shape is not None and len(base.shape) == 1 else "vhd".index(cut[1])
        attrs = {"self": Operand(0, False), "src": Operand(1, False), "dim": dim}
        if node.op == "unbind.int":
            attrs["index"] = cell.place
            return self._emit("select_scatter", (base, value), attrs, result, node.sources)
        sizes = [None if v.shape is None else v.shape[dim] for v in node.outputs]
        before = sizes[: cell.place + 1]
        if not all(isinstance(s, int) for s in before):
            raise ConversionError(f"a write to a part of unknown size that {node.op} gives: "
                                  "clone it before the write")  # fmt: skip
        end = sum(s for s in before if isinstance(s, int))
        attrs |= {"start": end - before[-1], "end": end, "step": 1}  # type: ignore[operator]
        return self._emit("slice_scatter", (base, value), attrs, result, node.sources)

    def name_output(self, name: str, label: str) -> Value:
        """The value of an output, a value of its own that is called ``label``."""
        value = self.read(name)
        is_computed = value.tensor is None and any(value in n.outputs for n in self.nodes[-1:])
        if value in self.named or value.name != label or not is_computed:
            value = self._emit("alias", (value,), {"self": Operand(0, False)},
                               Value(label, value.dtype, value.shape), ())  # fmt: skip
        self.named.add(value)
        return value


def _pad(outputs: tuple[Value, ...], node: Node) -> tuple[Value, ...]:
    """All results of a normalization, in front of the statistics that it moves."""
    count = 3 if node.op.startswith("_native_batch_norm") else 1
    more = [Value(f"{node.name}.{i}") for i in range(len(outputs), count)]
    return (*outputs, *more)


def _training_writes(node: Node, arguments: Mapping[str, str | None]) -> list[str]:
    """The statistics that a normalization moves in training."""
    if node.op not in ("batch_norm", "_native_batch_norm_legit"):
        return []
    if not node.attrs.get("training"):
        return []
    names = [arguments.get("running_mean"), arguments.get("running_var")]
    return [n for n in names if n is not None]
