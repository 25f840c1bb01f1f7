"""Grow a random program: pick an operator, operands that it takes, run it, keep it if it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from serde.ir.graph import DType
from serde.spec import schema

from .evaluate import Rejected, run_step, run_steps
from .program import Array, Body, Program, Step, dtype_of, names_read
from .values import draw

D = DType
WEIGHTS = {
    D.FLOAT32: 40, D.FLOAT16: 8, D.FLOAT64: 8, D.BFLOAT16: 3, D.INT64: 12, D.INT32: 10, D.INT8: 4,
    D.INT16: 2, D.UINT8: 5, D.UINT16: 2, D.UINT32: 2, D.UINT64: 2, D.BOOL: 6, D.STRING: 2,
    D.INT4: 1, D.UINT4: 1, D.FLOAT8E4M3FN: 1, D.FLOAT8E5M2: 1,
}  # fmt: skip
NARROW = {D.FLOAT32: 40, D.INT64: 8, D.INT32: 3, D.BOOL: 4}
ONLY_FLOATS = {D.FLOAT32: 1}
SIZES = (1, 1, 2, 2, 3, 3, 4, 5)
NAMED = {"N": 6, "M": 7}  # sizes by name, which no other size is drawn to be
OTHERS = {"N": (1, 2, 9), "M": (1, 4, 10)}  # what they are in the second set of data
MORE = 2  # further sets of data of the same sizes
OPSETS = (18, 19, 20, 21, 21, 22, 23, 24, 25, 26, 26, 28)
Maker = Callable[["Generator"], Any]


class Generator:
    """A program as it grows. Makers pick operands with its methods, and emit nodes."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"differential {seed}")
        self.numbers = np.random.default_rng(self.rng.randrange(2**63))
        rng = self.rng
        self.program = Program(seed, rng.choice(OPSETS))
        self.extreme = rng.random() < 0.25  # whether some leaves have extreme values
        self.symbolic = rng.random() < 0.5
        self.empty = rng.random() < 0.06
        self.plain = rng.random() < 0.8  # without strings and sequences
        self.weights = self.draw_weights()
        self.constants = rng.choice((0.1, 0.4, 0.8))  # how often a leaf is one
        self.values: dict[str, Array] = {}
        self.visible: list[str] = []
        self.bodies: list[Body] = []
        self.count = 0
        self.free: set[str] = set()  # leaves that may hold anything of their type

    def narrow(self, only_floats: bool) -> None:
        """Draw what runtimes of few element types have: plain numbers, in float32 mostly.

        With ``only_floats``, nothing else, in static shapes.
        """
        self.extreme, self.empty, self.plain = False, False, True
        self.symbolic = not only_floats and self.chance(0.25)
        self.constants = min(self.constants, 0.4)
        if only_floats or self.chance(0.8):
            self.weights = dict(ONLY_FLOATS if only_floats else NARROW)

    def draw_weights(self) -> dict[DType, int]:
        """The element types of the program, with how often each is drawn."""
        if self.rng.random() < 0.35:
            kinds = set(WEIGHTS)
        else:
            odd = [d for d in WEIGHTS if d is not D.STRING]
            kinds = {D.FLOAT32, D.INT64, D.BOOL, *self.rng.sample(odd, 3)}
        return {
            d: w for d, w in WEIGHTS.items() if d in kinds and not (self.plain and d is D.STRING)
        }

    @property
    def opset(self) -> int:
        """The opset of the program."""
        return self.program.opset

    @property
    def steps(self) -> list[Step]:
        """Where nodes are added: the innermost body, or the program."""
        return self.bodies[-1].steps if self.bodies else self.program.steps

    def name(self, stem: str) -> str:
        """A name of its own."""
        self.count += 1
        return f"{stem}{self.count}"

    def choice(self, items: Iterable[Any]) -> Any:
        """One of several."""
        return self.rng.choice(list(items))

    def chance(self, probability: float) -> bool:
        """Whether a coin falls so."""
        return self.rng.random() < probability

    # Leaves

    def size(self) -> int:
        """A size, now and then one with a name, or 0."""
        if self.empty and self.chance(0.2):
            return 0
        if self.symbolic and self.chance(0.35):
            return self.choice(NAMED.values())
        return self.rng.choice(SIZES)

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        """A shape of a rank in a range."""
        return tuple(self.size() for _ in range(self.rng.randint(least, most)))

    def leaf(self, dtype: DType, shape: Sequence[int], constant: bool | None = None) -> str:
        """A new input or constant with random contents."""
        array = draw(self.numbers, dtype, tuple(shape), self.extreme and self.chance(0.4))
        name = self.hold(array, constant)
        self.free.add(name)
        return name

    def hold(self, array: Array, constant: bool | None = None) -> str:
        """A new input or constant that holds ``array``."""
        array = np.asarray(array)
        sizes = {v: n for n, v in NAMED.items()} if self.symbolic else {}
        named = any(d in sizes for d in array.shape)
        if constant is None:
            constant = self.chance(self.constants) and not named
        name = self.name("c" if constant else "x")
        if (not constant and dtype_of(array) in (D.BFLOAT16, D.INT4, D.UINT4)) or (
            array.dtype.name.startswith("float8")
        ):
            constant = True
        self.values[name] = array
        self.visible.append(name)
        if constant and self.bodies and self.chance(0.5):
            self.bodies[-1].constants[name] = array
        elif constant:
            self.program.constants[name] = array
        else:
            self.program.dims[name] = tuple(sizes.get(d, d) for d in array.shape)
        return name

    def const(self, data: Any, dtype: Any = np.int64) -> str:
        """A constant."""
        return self.hold(np.asarray(data, dtype), True)

    def index(self, data: Any, dtype: Any = np.int64) -> str:
        """An operand that older opsets had as an attribute: mostly a constant, else an input."""
        return self.hold(np.asarray(data, dtype), not self.chance(0.12))

    # Operands

    def types(self, op: str, place: int = 0) -> set[DType]:
        """The element types that an operator takes in a place, of those that are drawn."""
        operator = schema.find(op, self.opset)
        if operator is None:
            raise Rejected(f"opset {self.opset} has no {op}")
        types = set(operator.input(place).types) & self.weights.keys()
        if not types:
            raise Rejected("no type")
        return types

    def pick_type(self, types: Iterable[DType]) -> DType:
        """One of some types, common ones more often."""
        allowed = sorted(set(types) & WEIGHTS.keys(), key=lambda d: d.value)
        if not allowed:
            raise Rejected("no type")
        likely = [d for d in allowed if d in self.weights] or allowed
        return self.rng.choices(likely, [WEIGHTS[d] for d in likely])[0]

    def existing(
        self, types: Iterable[DType], least: int = 0, most: int = 6, shape: Any = None
    ) -> str | None:
        """A value that is there, one of the last more often."""
        allowed = set(types)
        fit = [
            n for n in self.visible
            if not isinstance(a := self.values[n], list) and dtype_of(a) in allowed
            and least <= a.ndim <= most and (shape is None or a.shape == tuple(shape))
        ]  # fmt: skip
        if not fit:
            return None
        recent = fit[-3:]
        return self.rng.choice(recent if self.chance(0.7) else fit)

    def operand(self, types: Iterable[DType], least: int = 0, most: int = 4) -> str:
        """A value of one of some types and of a rank in a range."""
        types = set(types)
        name = self.existing(types, least, most) if self.chance(0.88) else None
        if name is not None:
            return name
        dtype = self.pick_type(types)
        if self.chance(0.5) and (other := self.existing(WEIGHTS, least, most)) is not None:
            try:
                return self.cast(other, dtype)
            except Rejected:
                pass
        return self.leaf(dtype, self.shape(least, most))

    def cast(self, name: str, dtype: DType) -> str:
        """A value in another element type."""
        if dtype_of(self.values[name]) is dtype:
            return name
        return self.emit("Cast", [name], to=schema.ELEMENT_CODES[dtype])

    def like(self, dtype: DType, shape: Sequence[int]) -> str:
        """A value of a type and shape: one that is there, or a new leaf."""
        name = self.existing({dtype}, shape=shape) if self.chance(0.7) else None
        return name or self.leaf(dtype, shape)

    def of(self, name: str) -> Array:
        """What a value holds."""
        return self.values[name]

    def dtype(self, name: str) -> DType:
        """The element type of a value."""
        return dtype_of(self.values[name])

    def broadcastable(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with another."""
        dims = [d if self.chance(0.7) else 1 for d in shape]
        cut = self.rng.randint(0, len(dims)) if self.chance(0.3) else 0
        return tuple(dims[cut:])

    def axis(self, rank: int) -> int:
        """An axis, counted from the front or the back."""
        if rank == 0:
            raise Rejected("no axis")
        return self.rng.randrange(-rank, rank)

    def axes(self, rank: int, least: int = 0) -> list[int]:
        """Several axes, in any order."""
        count = self.rng.randint(min(least, rank), rank)
        return [a - rank if self.chance(0.3) else a for a in self.rng.sample(range(rank), count)]

    # Nodes

    def emit(self, op: str, inputs: Sequence[str], outputs: int = 1, **attrs: Any) -> Any:
        """Add a node that computes; its output's name, or several.

        Raises:
            Rejected: where the node is not defined or cannot be run.
        """
        names = tuple(self.name("v") for _ in range(outputs))
        attrs = {k: v for k, v in attrs.items() if v is not None}
        step = Step(op, tuple(inputs), names, attrs)
        run_step(step, self.values, self.opset, few=not self.chance(0.5))
        self.steps.append(step)
        self.visible.extend(names)
        return names[0] if outputs == 1 else names

    def attempt(self, make: Maker) -> bool:
        """Let a maker add its nodes; leave nothing of them where it is rejected."""
        steps, seen = len(self.steps), len(self.visible)
        depth = len(self.bodies)
        try:
            make(self)
        except Rejected:
            del self.bodies[depth:]
            del self.steps[steps:]
            self.drop(self.visible[seen:])
            del self.visible[seen:]
            return False
        return True

    def drop(self, names: Iterable[str]) -> None:
        """Forget leaves."""
        for name in names:
            self.program.dims.pop(name, None)
            self.program.constants.pop(name, None)
            for body in self.bodies:
                body.constants.pop(name, None)

    def grow(self, makers: Sequence[Maker], count: int) -> None:
        """Add nodes of random makers until there are so many, or too many were rejected."""
        total = len(self.steps) + count
        for _ in range(count * 4):
            if len(self.steps) >= total:
                return
            self.attempt(self.rng.choice(makers))

    def finish(self) -> Program:
        """The program: what nothing reads is an output, and some of the rest."""
        program = self.program
        names = [n for s in program.steps for n in s.outputs]
        read = {n for s in program.steps for n in names_read(s)}
        share = self.choice((0.0, 0.1, 0.5))
        program.outputs = [n for n in names if n not in read or self.chance(share)]
        used = read | set(program.outputs)
        program.dims = {n: d for n, d in program.dims.items() if n in used}
        program.constants = {n: a for n, a in program.constants.items() if n in used}
        program.data = [dict(self.values)]
        if any(isinstance(d, str) for dims in program.dims.values() for d in dims):
            self.resize()
        for _ in range(MORE):
            self.redraw({})
        return program

    def resize(self) -> None:
        """Add data of other sizes; where the program does not run with them, fix the sizes."""
        if not self.redraw({n: self.choice(pool) for n, pool in OTHERS.items()}):
            self.program.dims = {n: self.values[n].shape for n in self.program.dims}

    def redraw(self, sizes: Mapping[str, int]) -> bool:
        """Add a set of data with other numbers and some other sizes, if the program runs so."""
        program = self.program
        values: dict[str, Array] = dict(program.constants)
        for name, dims in program.dims.items():
            old = self.values[name]
            named = zip(dims, old.shape, strict=True)
            shape = tuple(sizes.get(d, s) if isinstance(d, str) else s for d, s in named)
            values[name] = old
            if shape != old.shape or name in self.free:
                extreme = self.extreme and self.chance(0.4)
                values[name] = draw(self.numbers, dtype_of(old), shape, extreme)
        try:
            run_steps(program.steps, values, program.opset)
        except Rejected:
            return False
        program.data.append(values)
        return True
