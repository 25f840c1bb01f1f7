"""If, Loop and Scan, with bodies of random nodes that may read what is outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from serde.ir.graph import DType

from ..evaluate import Rejected
from ..generator import Generator, Maker
from ..program import Body

DEPTH = 2


@contextmanager
def body(g: Generator) -> Iterator[Body]:
    """A body that grows; what it computes is not seen outside."""
    if len(g.bodies) >= DEPTH:
        raise Rejected("too deep")
    inner, seen = Body(), len(g.visible)
    g.bodies.append(inner)
    yield inner
    g.bodies.pop()
    outer = g.bodies[-1].constants if g.bodies else {}
    kept = [n for n in g.visible[seen:] if n in g.program.dims or n in g.program.constants
            or n in outer]  # fmt: skip
    g.visible[seen:] = kept


def grow(g: Generator) -> None:
    """Add some nodes to the body."""
    from . import all_makers

    g.grow(all_makers(), g.choice((1, 2, 3)))


def fit(g: Generator, dtype: DType, shape: tuple[int, ...]) -> str:
    """A value of a type and shape that the body computes, if there is one."""
    inside = [n for s in g.steps for n in s.outputs if not isinstance(g.of(n), list)]
    fitting = [n for n in inside if g.dtype(n) is dtype and g.of(n).shape == shape]
    if fitting:
        return g.choice(fitting)
    value = g.like(dtype, shape)
    return g.emit("Identity", [value])


def tensors(g: Generator) -> list[str]:
    """The tensors that the body computes."""
    names = [n for s in g.steps for n in s.outputs]
    return [n for n in names if not isinstance(g.of(n), list)]


def flag(g: Generator) -> str:
    """A condition: one that is there, an input or a constant."""
    return g.existing({DType.BOOL}, 0, 0) or g.leaf(DType.BOOL, (), g.chance(0.3))


def make_if(g: Generator) -> None:
    condition = flag(g)
    with body(g) as first:
        grow(g)
        choices = tensors(g)
        if not choices:
            raise Rejected("nothing")
        first.outputs = g.rng.sample(choices, min(len(choices), g.choice((1, 1, 2))))
    types = [(g.dtype(n), g.of(n).shape) for n in first.outputs]
    with body(g) as second:
        grow(g)
        used: list[str] = []
        for dtype, shape in types:
            name = fit(g, dtype, shape)
            used.append(g.emit("Identity", [name]) if name in used else name)
        second.outputs = used
    branches = (first, second) if g.chance(0.5) else (second, first)
    g.emit("If", [condition], outputs=len(types), then_branch=branches[0], else_branch=branches[1])


def choose_carried(g: Generator) -> list[str]:
    """What a loop starts with."""
    count = g.choice((1, 1, 2))
    types = {d for d in g.types("Loop", 2) if d.kind in "fiub" and d.bits >= 8}
    return [g.operand(types - {DType.BFLOAT16}, 0, 3) for _ in range(count)]


def enter(g: Generator, inside: Body, arrays: list[np.ndarray], stem: str) -> list[str]:
    """Inputs of a body, with what they are at first."""
    names = []
    for array in arrays:
        name = g.name(stem)
        g.values[name] = array
        names.append(name)
    g.visible.extend(names)
    inside.inputs.extend(names)
    return names


def make_loop(g: Generator) -> None:
    starts = choose_carried(g)
    count = g.index(g.choice((0, 1, 2, 3))) if g.chance(0.85) else ""
    going = flag(g) if g.chance(0.4) else ""
    with body(g) as inside:
        entered = [np.array(0, np.int64), np.array(True), *(g.of(n) for n in starts)]
        names = enter(g, inside, entered, "i")
        grow(g)
        if going or not count:
            limit = g.const(g.choice((0, 1, 2)))
            condition = g.emit("Less", [names[0], limit])
        else:
            condition = g.emit("Identity", [names[1]])
        kept: list[str] = []
        for name in names[2:]:
            result = fit(g, g.dtype(name), g.of(name).shape)
            kept.append(g.emit("Identity", [result]) if result in kept else result)
        scanned = g.rng.sample(tensors(g), g.choice((0, 0, 1)))
        scanned = [n for n in scanned if n not in kept and n != condition]
        inside.outputs = [condition, *kept, *scanned]
    g.emit("Loop", [count, going, *starts], outputs=len(kept) + len(scanned), body=inside)


def make_scan(g: Generator) -> None:
    types = {d for d in g.types("Scan") if d.kind in "fiub" and d.bits >= 8} - {DType.BFLOAT16}
    x = g.operand(types, 1, 3)
    shape = g.of(x).shape
    axis = g.rng.randrange(len(shape)) if g.chance(0.4) else 0
    if not shape[axis]:
        raise Rejected("no iteration")
    states = [g.operand(types, 0, 2) for _ in range(g.choice((0, 1, 1)))]
    backwards = g.choice((0, 1)) if g.chance(0.4) else None
    with body(g) as inside:
        entered = [*(g.of(n) for n in states), np.take(g.of(x), -1 if backwards else 0, axis)]
        names = enter(g, inside, [np.asarray(a) for a in entered], "i")
        grow(g)
        kept: list[str] = []
        for name in names[: len(states)]:
            result = fit(g, g.dtype(name), g.of(name).shape)
            kept.append(g.emit("Identity", [result]) if result in kept else result)
        choices = [n for n in tensors(g) if n not in kept]
        if not choices:
            choices = [g.emit("Identity", [names[-1]])]
        scanned = [g.choice(choices)]
        inside.outputs = [*kept, *scanned]
    attrs = {"scan_input_axes": [axis] if axis else None,
             "scan_input_directions": None if backwards is None else [backwards],
             "scan_output_directions": [1] if g.chance(0.2) else None}  # fmt: skip
    g.emit(
        "Scan", [*states, x], outputs=len(inside.outputs), num_scan_inputs=1, body=inside, **attrs
    )


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    yield from (make_if, make_loop, make_scan)
