"""Arrays of a checkpoint of which a model reads parts, others joined, or another shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from serde.ir.graph import Node, Run, Tensor, Value
from serde.spec.weight_origins import origins_of

from ..target import ListOf, Slot
from .tie_arrays import find_order

MOST_ROWS = 64  # that are listed in the source


class Wholes:
    """The arrays that are read as a whole or in parts.

    ``bases`` tells what a constant has been derived from, ``keys_of`` the arrays of the checkpoint
    that it is made of, ``is_rearranged`` whether it has those of one in an order of its own.
    """

    def __init__(
        self, nodes: list[Node], bases: Mapping[Value, Value],
        keys_of: Callable[[Value], list[str]], is_rearranged: Callable[[Value], bool],
    ) -> None:  # fmt: skip
        self.bases = bases
        self.keys_of, self.is_rearranged = keys_of, is_rearranged
        parts: dict[str, dict[int, Value]] = {}
        self.arrays: dict[str, Value] = {}
        for value in dict.fromkeys(v for n in nodes for v in n.inputs if v and v.tensor):
            run = self.find_run(value)
            if run is None or run.begin is None:
                continue
            if run.shape == value.static_shape:
                self.arrays.setdefault(run.names[0], value)
            else:
                parts.setdefault(run.names[0], {})[run.begin] = value
        for key, by_place in parts.items():
            if key not in self.arrays and (whole := self.join(key, by_place)) is not None:
                self.arrays[key] = whole

    def add_reshaped(self, value: Value, keys: Collection[str]) -> None:
        """Let a constant be the one array of ``keys``, a vector that has been given more axes."""
        tensor, axes = value.tensor, [d for d in value.static_shape if d != 1]
        if tensor is None or len(keys) != 1 or len(axes) != 1 or value.type.kind != "f":
            return
        (key,) = keys
        self.add(value, key, (tensor.size,))

    def add(self, value: Value, key: str, shape: tuple[int, ...]) -> None:
        """Let a constant be the array ``key``, of ``shape``, in another shape."""
        tensor = value.tensor
        assert tensor is not None
        array = Tensor(tensor.dtype, shape, lambda: tensor.load().reshape(shape))
        whole = Value(key, tensor.dtype, shape, array, name_is_original=True)
        known = self.arrays.setdefault(key, whole)
        if known is whole or np.array_equal(known.array(), array.load()):
            value.origins = (Run((key,), tensor.size, 0, shape),)

    def find_run(self, value: Value) -> Run | None:
        """Where a constant is in an array of the checkpoint, if it has its rows in order."""
        origins = origins_of(value)
        if len(origins) != 1 or origins[0].begin is None or len(self.keys_of(value)) != 1:
            return None
        run, base = origins[0], self.bases.get(value)
        if base is None:
            return run if run.is_ordered else None
        # A matrix that was turned, and is turned back by the layer that reads it.
        is_turned = all(not r.is_ordered for r in origins_of(base))
        is_rows = value.rank == 2 and value.static_shape[1:] == run.shape[1:]
        return run if is_turned and is_rows else None

    def join(self, key: str, parts: Mapping[int, Value]) -> Value | None:
        """The whole of parts: of the file, or joined where none is missing."""
        ordered = [parts[begin] for begin in sorted(parts)]
        sizes = [0]
        for value in ordered:
            assert value.tensor is not None
            sizes.append(sizes[-1] + value.tensor.size)
        run, dtype = self.find_run(ordered[0]), ordered[0].type
        if run is not None and run.whole is not None and run.whole.dtype is dtype:
            return Value(key, dtype, run.shape, run.whole, name_is_original=True)
        if run is None or sizes[:-1] != sorted(parts) or sizes[-1] != math.prod(run.shape):
            return None
        tensors = [v.tensor for v in ordered if v.tensor is not None]

        def load() -> np.ndarray:  # type: ignore[type-arg]
            return np.concatenate([t.load().reshape(-1) for t in tensors]).reshape(run.shape)

        return Value(key, dtype, run.shape, Tensor(dtype, run.shape, load), name_is_original=True)

    def read(self, value: Value, node: Node) -> list[Node]:
        """The expressions of the array that compute a constant; none where it is the array."""
        if len(origins_of(value)) > 1:
            return self.join_parts(value, node)
        if self.is_rearranged(value):
            return self.choose_rows(value, node)
        run = self.find_run(value)
        if run is None:
            return self.turn(value, node)
        whole = self.arrays.get(run.names[0])
        if whole is None or whole.static_shape == value.static_shape:
            return []
        return list(_read(whole, run, value, node))

    def turn(self, value: Value, node: Node) -> list[Node]:
        """The expression of a constant that is an array that is turned, or some of its rows: a
        square, or one of more axes.
        """
        (run,) = origins_of(value) or (None,)
        if run is None or run.whole is None or run.is_ordered or value.rank < 2:
            return []
        if value.rank == 2 and not is_turned_square(run.whole, value):
            return []  # layers turn it back
        if run.whole.dtype is not value.type or self.keys_of(value) != [*run.names]:
            return []
        (key,) = run.names
        whole = Value(key, value.type, run.whole.shape, run.whole, name_is_original=True)
        whole = base = self.arrays.setdefault(key, whole)
        cut: list[Node] = []
        if run.size != run.whole.size:
            sizes = list_sizes(run)
            if sizes is None or math.prod(sizes) != math.prod(value.static_shape):
                return []
            assert run.begin is not None
            base = cut_rows(whole, run.begin, sizes, f"{value.name}.rows", is_original=False)
            cut = list(_read(whole, run, base, node))
        steps = [replace(step, sources=node.sources) for step in find_order(base, value)]
        if steps and cut:
            steps[0] = replace(steps[0], inputs=cut[-1].outputs[:1])
        return [*cut, *steps] if steps else []

    def choose_rows(self, value: Value, node: Node) -> list[Node]:
        """The expression of a constant that has the rows of an array in another order, or turned.

        There is none where rows are equal, which other arrays of the checkpoint may not be.
        """
        (run,) = origins_of(value)
        assert run.whole is not None
        key, whole = run.names[0], run.whole
        base = Value(key, value.type, whole.shape, whole, name_is_original=True)
        rows = [row.tobytes() for row in whole.load()]
        places = {row: at for at, row in enumerate(rows)}
        is_plain = len(places) == len(rows) <= MOST_ROWS and self.keys_of(base) == [key]
        for array in (value.array(), value.array().T) if is_plain else ():
            if array.shape == whole.shape and all(row.tobytes() in places for row in array):
                base = self.arrays.setdefault(key, base)
                order = ListOf(tuple([places[row.tobytes()] for row in array]))
                x = Value(value.name, value.dtype, whole.shape)
                index = Node("[]", (base,), (x,), {"args": (Slot(0), order)}, "torch")
                y = Value(value.name, value.dtype, value.shape)
                turn = Node(".t", (x,), (y,), {"args": (Slot(0),)}, "torch")
                is_turned = not np.array_equal(array, value.array())
                steps = [index, turn] if is_turned else [index]
                return [replace(step, sources=node.sources) for step in steps]
        return []

    def join_parts(self, value: Value, node: Node) -> list[Node]:
        """The expression of a constant in which arrays of the checkpoint are one behind another.

        What no array gives are constants.
        """
        row, begin = max(math.prod(value.static_shape[1:]), 1), 0
        parts: list[Value] = []
        steps: list[Node] = []
        for at, run in enumerate(origins_of(value)):
            is_known = len(run.names) == 1 and run.is_ordered and run.begin is not None
            shape = run.shape if run.names else (run.size // row, *value.static_shape[1:])
            if (run.names and not is_known) or shape[1:] != value.static_shape[1:]:
                return []
            part = self.find_part(value, run, begin, f"{value.name}_{at}", shape)
            if part is None:
                return []
            if run.names and run.size != math.prod(run.shape):
                rows = Value(part.name, value.dtype, (run.size // row, *shape[1:]))
                cut = list(_read(part, run, rows, node))
                if not cut:
                    return []
                steps += cut
                part = cut[-1].outputs[0]
            parts.append(part)
            begin += run.size
        joined = Value(value.name, value.dtype, value.shape)
        args = (ListOf(tuple([Slot(at) for at in range(len(parts))])),)
        join = Node("torch.cat", tuple(parts), (joined,), {"args": args}, "torch",
                    sources=node.sources)  # fmt: skip
        return [*steps, join]

    def find_part(
        self, value: Value, run: Run, begin: int, name: str, shape: tuple[int, ...]
    ) -> Value | None:
        """The array that a run of a constant is of, or the run itself where none gives it."""
        if run.names and run.size != math.prod(run.shape):
            if run.whole is None or run.whole.dtype is not value.type:
                return None
            part = Value(run.names[0], value.type, shape, run.whole, name_is_original=True)
        else:
            name = run.names[0] if run.names else name
            part = cut_rows(value, begin, shape, name, is_original=bool(run.names))
        if self.keys_of(part) != [*run.names]:
            return None
        return self.arrays.setdefault(part.name, part)


def is_turned_square(whole: Value | Tensor, value: Value) -> bool:
    """Whether a constant is a square array that is turned; as it is, it is turned twice.

    A value of ``whole`` is only meant where it has the elements of its source as they are.
    """
    if isinstance(whole, Value):
        (run,) = origins_of(whole) if len(origins_of(whole)) == 1 else (None,)
        source = None if run is None else run.whole
        if source is None or source.shape != whole.static_shape:
            return False
        if not np.array_equal(whole.array(), source.load()):
            return False
        whole = source
    return whole.shape == value.static_shape and not np.array_equal(whole.load(), value.array())


def cut_rows(
    value: Value, begin: int, shape: tuple[int, ...], name: str, is_original: bool
) -> Value:  # fmt: skip
    """A constant of the elements of another from ``begin`` on."""
    tensor, end = value.tensor, begin + math.prod(shape)
    assert tensor is not None
    load = tensor.load
    rows = Tensor(tensor.dtype, shape, lambda: load().reshape(-1)[begin:end].reshape(shape))
    return Value(name, tensor.dtype, shape, rows, name_is_original=is_original)


def list_sizes(run: Run) -> tuple[int, ...] | None:
    """The shape of the rows of an array that a run has; None where it does not have whole rows."""
    outer = find_rows(run)
    row = math.prod(run.shape[outer + 1 :])
    if run.begin is None or run.begin % row or run.size % row:
        return None
    return (*run.shape[:outer], run.size // row, *run.shape[outer + 1 :])


def find_rows(run: Run) -> int:
    """The first axis of an array that has several elements."""
    return next((at for at, size in enumerate(run.shape) if size != 1), 0)


def _read(whole: Value, run: Run, value: Value, node: Node) -> Iterator[Node]:
    x, shape = whole, value.static_shape
    if run.size != math.prod(run.shape):
        sizes, outer = list_sizes(run), find_rows(run)
        if sizes is None:
            return
        assert run.begin is not None
        begin = run.begin // math.prod(run.shape[outer + 1 :])
        end = None if begin + sizes[outer] == run.shape[outer] else begin + sizes[outer]
        part = Value(value.name, value.dtype, sizes)
        args = Slot(0), *[slice(None)] * outer, slice(begin or None, end)
        yield Node("[]", (x,), (part,), {"args": args}, "torch", sources=node.sources)
        x = part
    if x.static_shape != shape:
        turned = Value(value.name, value.dtype, shape)
        attrs = {"args": (Slot(0), *(shape or ((),)))}
        yield Node(".reshape", (x,), (turned,), attrs, "torch", sources=node.sources)
