"""What callers say of the batch: its new size, and the axes of inputs and outputs that have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from serde.errors import UsageError
from serde.ir.dim_expr import is_number
from serde.ir.graph import Dim, Graph, Value
from serde.passes.cut_inputs import check_dim_name, check_integer, check_size

ALL = "*"  # stands for the inputs that are not named
NONE = "none"
EXAMPLE = "rebatch={'*': 'N', 'state': (1, 'N'), 'rate': None}"


class Request(NamedTuple):
    """A new batch.

    Attributes:
        size: a number or a name.
        axes: the axis of each input or output that is named; None where it has no batch.
        has_default: whether the other inputs have the batch along their first axis.
    """

    size: int | str
    axes: Mapping[str, int | None]
    has_default: bool


def read_request(batch: Any) -> Request:
    """A request of a size for all inputs, or a mapping by name to axes, or to axes and sizes.

    Raises:
        UsageError: for what can mean nothing.
    """
    if not isinstance(batch, Mapping):
        return Request(_check_batch(batch, "--rebatch"), {}, True)
    sizes = [_check_batch(batch[ALL], f"--rebatch={ALL}")] if ALL in batch else []
    axes: dict[str, int | None] = {}
    for name, value in batch.items():
        if name == ALL:
            continue
        parts = value if isinstance(value, (tuple, list)) else (value,)
        if len(parts) not in (1, 2):
            raise UsageError(f"--rebatch={name}={value!r} is not an axis and a size")
        axis, *size = parts
        check_integer(axis, f"--rebatch={name}", 0)
        sizes += [_check_batch(each, f"--rebatch={name}") for each in size]
        axes[name] = None if axis is None else int(axis)
    if len(set(sizes)) != 1:
        shown = ", ".join(map(str, sizes)) or "none"
        raise UsageError(f"--rebatch gives one size to all inputs; got {shown}: {EXAMPLE}")
    return Request(sizes[0], axes, ALL in batch)


def _check_batch(size: Any, what: str) -> int | str:
    if isinstance(size, str):
        check_dim_name(size, what)
        return size
    if size is None:
        raise UsageError(f"{what}={size!r} is not a size: give a number or a name")
    check_integer(size, what, 1)
    check_size(size, what)
    return int(size)


def parse_request(text: str) -> tuple[str, Any]:
    """An option as the command takes it: ``N``, ``NAME=AXIS``, ``NAME=AXIS:N`` or ``NAME=none``."""
    name, equals, value = text.rpartition("=")
    if not equals:
        return ALL, _parse_size(value)
    axis, colon, size = value.partition(":")
    if axis == NONE and not colon:
        return name, None
    if not name or not is_number(axis) or (colon and not size):
        raise UsageError(f"--rebatch {text!r} is not N, NAME=AXIS:N or NAME={NONE}")
    return name, (int(axis), *([_parse_size(size)] if colon else []))


def _parse_size(text: str) -> int | str:
    return int(text) if is_number(text.removeprefix("-")) else text


class BatchAxes(NamedTuple):
    """The batch a graph was made for, and where inputs and outputs have it."""

    size: Dim
    inputs: Mapping[Value, int]
    outputs: Mapping[str, int | None]


def find_batch_axes(graph: Graph, request: Request) -> BatchAxes:
    """The axes of the batch by what callers say of them.

    Raises:
        UsageError: where the inputs do not share a batch.
    """
    outputs = {v.name for v in graph.outputs}
    unknown = sorted(request.axes.keys() - outputs - {v.name for v in graph.inputs})
    if unknown:
        names = ", ".join([*(v.name for v in graph.inputs), *sorted(outputs)])
        raise UsageError(f"--rebatch: no input or output is called {unknown[0]!r}; it has {names}")
    axes = {}
    for value in graph.inputs:
        axis = request.axes.get(value.name, 0 if request.has_default else None)
        if axis is None or value.shape is None or value.container:
            continue
        if axis < len(value.shape):
            axes[value] = axis
        elif value.name in request.axes:
            raise UsageError(f"input {value.name!r} of rank {len(value.shape)} has no axis {axis}")
    sizes = {(v.shape or ())[axis] for v, axis in axes.items()}
    if len(sizes) != 1:
        shown = ", ".join(sorted(map(str, sizes))) or "none"
        raise UsageError(
            f"the inputs do not share a batch along axis 0: they have {shown}. Name the axis of an "
            f"input, or that it has none: --rebatch {graph.inputs[0].name if graph.inputs else 'x'}"
            f"=1:{request.size}, --rebatch NAME={NONE}"
        )
    named = {n: a for n, a in request.axes.items() if n in outputs}
    return BatchAxes(next(iter(sizes)), axes, named)
