"""Strings, sequences and optionals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from serde.ir.graph import DType

from ..evaluate import Rejected
from ..generator import Generator, Maker

S = {DType.STRING}


def unless_plain(make: Maker, g: Generator) -> None:
    """Strings and sequences are for the programs that have them."""
    if g.plain:
        raise Rejected("plain")
    make(g)


def make_string_concat(g: Generator) -> None:
    a = g.operand(S)
    g.emit("StringConcat", [a, g.like(DType.STRING, g.broadcastable(g.of(a).shape))])


def make_string_split(g: Generator) -> None:
    limit = g.choice((1, 2)) if g.chance(0.3) else None
    g.emit("StringSplit", [g.operand(S, 0, 3)], outputs=2, maxsplit=limit,
           delimiter=g.choice((",", " ", "", None)))  # fmt: skip


def make_regex(g: Generator) -> None:
    pattern = g.choice(("a.*", "[ab]+", ".*b.*", "[0-9.-]*"))
    g.emit("RegexFullMatch", [g.operand(S)], pattern=pattern)


def make_normalizer(g: Generator) -> None:
    x = g.like(DType.STRING, (g.choice((1, 3)),))
    words = [g.choice(("a", "b", "ab"))] if g.chance(0.5) else None
    g.emit("StringNormalizer", [x], case_change_action=g.choice(("LOWER", "UPPER", "NONE", None)),
           is_case_sensitive=g.choice((0, 1, None)), stopwords=words)  # fmt: skip


def make_sequence(g: Generator) -> str:
    """A sequence of tensors of one rank."""
    x = g.operand(g.types("SequenceConstruct"), 1, 3)
    shape = g.of(x).shape
    more = [g.like(g.dtype(x), shape) for _ in range(g.choice((1, 2)))]
    return g.emit("SequenceConstruct", [x, *more])


def sequence(g: Generator) -> str:
    """A sequence that is there, or a new one."""
    held = [n for n in g.visible if isinstance(g.of(n), list)]
    return g.choice(held) if held and g.chance(0.7) else make_sequence(g)


def make_insert(g: Generator) -> None:
    s = sequence(g)
    first = g.of(s)[0]
    x = g.like(DType.of(first.dtype), first.shape)
    at = [g.index(g.rng.randint(-1, len(g.of(s))))] if g.chance(0.6) else []
    g.emit("SequenceInsert", [s, x, *at])


def make_erase(g: Generator) -> None:
    s = sequence(g)
    if len(g.of(s)) < 2:
        raise Rejected("nothing would be left")
    at = [g.index(g.rng.randint(-1, len(g.of(s)) - 1))] if g.chance(0.6) else []
    g.emit("SequenceErase", [s, *at])


def make_at(g: Generator) -> None:
    s = sequence(g)
    g.emit("SequenceAt", [s, g.index(g.rng.randint(-1, len(g.of(s)) - 1))])


def make_length(g: Generator) -> None:
    g.emit("SequenceLength", [sequence(g)])


def make_concat_from(g: Generator) -> None:
    s = sequence(g)
    new = g.choice((0, 1))
    rank = g.of(s)[0].ndim + new
    g.emit("ConcatFromSequence", [s], axis=g.axis(rank), new_axis=new)


def make_split_to(g: Generator) -> None:
    x = g.operand(g.types("SplitToSequence"), 1, 3)
    axis = g.axis(g.of(x).ndim)
    size = [g.index(g.choice((1, 2)))] if g.chance(0.5) else []
    g.emit("SplitToSequence", [x, *size], axis=axis, keepdims=g.choice((0, 1, None)))


def make_optional(op: str, g: Generator) -> None:
    x = g.operand(g.types("Identity"), 0, 3)
    g.emit(op, [x])


def makers() -> Iterator[Maker]:
    """The makers of this family."""
    every = (
        make_string_concat, make_string_split, make_regex, make_normalizer, make_sequence,
        make_insert, make_erase, make_at, make_length, make_concat_from, make_split_to,
    )  # fmt: skip
    yield from (partial(unless_plain, make) for make in every)
    yield from (partial(make_optional, op) for op in ("OptionalHasElement", "OptionalGetElement"))
