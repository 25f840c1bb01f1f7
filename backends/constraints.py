"""Forms that a backend lacks, by the keys that an operator has in its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from serde.ir.graph import DType, Value, show_shape
from serde.legalize.forms import form as forms
from serde.legalize.forms.form import Call, Form
from serde.spec.schema import Operator

LIMITS = ("least", "most", "multiple_of")
AXES = frozenset({"axis", "axes"})  # attributes that may say "last"
AXIS, LAST = re.compile(r"-?\d+"), "last"
INTEGERS, NUMBERS, STRINGS = (int,), (int, float), (str,)
ATTRIBUTE_KINDS: Mapping[str, tuple[type, ...]] = {  # by the type in the schema
    "INT": INTEGERS, "INTS": INTEGERS, "FLOAT": NUMBERS, "FLOATS": NUMBERS, "STRING": STRINGS,
    "STRINGS": STRINGS,
}  # fmt: skip
KIND_NAMES: Mapping[tuple[type, ...], str] = {
    INTEGERS: "an integer", NUMBERS: "a number", STRINGS: "a string",
}  # fmt: skip


class InvalidKey(Exception):
    """A key or a value of a backend file that means nothing: the word that is wrong, and why."""

    def __init__(self, word: str, reason: str, choices: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.word, self.choices = word, tuple(choices)


def parse_types(names: Any, key: str) -> frozenset[DType]:
    """Element types by name."""
    known = {d.value: d for d in DType} | {"string": DType.STRING}
    if not isinstance(names, list) or not names:
        raise InvalidKey(key, f"{key} is to be a list of element types")
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise InvalidKey(str(name), f"there is no element type {name!r}", known)
    return frozenset(known[n] for n in names)


def type_constraints(value: Any, operator: Operator) -> dict[str, frozenset[DType]]:
    """The key ``types``: element types by type variable of the schema.

    A list is for the variable that has most of them in the standard, the first of several: that of
    the data, and not that of an index or a condition.
    """
    formals: dict[str, frozenset[DType]] = {}  # in the order of the schema
    for formal in (*operator.inputs, *operator.outputs):
        formals.setdefault(formal.tie, formal.types)
    if not isinstance(value, Mapping):
        types = parse_types(value, "types")
        tie = max(formals, key=lambda t: len(formals[t] & types), default="")
        if tie not in formals or not formals[tie] & types:
            raise InvalidKey("types", f"{operator.name} has none of these element types")
        return {tie: types}
    for tie in value:
        if tie not in formals:
            raise InvalidKey(tie, f"{operator.name} has no type variable {tie!r}", formals)
    return {tie: parse_types(names, "types") for tie, names in value.items()}


def check_name(operator: Operator, name: Any, key: str) -> str:
    """``name``, if the operator has an operand or a result that is called so."""
    names = [f.name for f in (*operator.inputs, *operator.outputs)]
    if name not in names:
        raise InvalidKey(str(name), f"{key}: {operator.name} has no operand {name!r}", names)
    return str(name)


def by_operand(value: Any, operator: Operator, key: str) -> dict[str, Any]:
    """What a key has by operand; what it has without a name is for the first one."""
    if isinstance(value, Mapping):
        return {check_name(operator, name, key): v for name, v in value.items()}
    if not operator.inputs:
        raise InvalidKey(key, f"{key}: {operator.name} has no operands")
    return {operator.inputs[0].name: value}


def read_ranks(value: Any, operator: Operator) -> Iterable[Form]:
    """The key ``ranks``: the number of dimensions of operands."""
    for name, ranks in by_operand(value, operator, "ranks").items():
        allowed = [ranks] if isinstance(ranks, int) else ranks
        if not isinstance(allowed, list) or not all(type(r) is int for r in allowed):
            raise InvalidKey("ranks", "ranks is to be a number or a list of numbers")
        yield from forms.require_ranks(name, allowed, operator)


def read_names(
    key: str, make: Callable[..., Iterable[Form]], value: Any, operator: Operator
) -> Iterable[Form]:
    """A key that lists names of operands and results."""
    if not isinstance(value, list):
        raise InvalidKey(key, f"{key} is to be a list of names of operands")
    return make(*(check_name(operator, name, key) for name in value), operator=operator)


def read_sizes(value: Any, operator: Operator) -> Iterable[Form]:
    """The key ``sizes``: limits of axes, by operand and axis, and of the number of elements."""
    for name, axes in by_operand(value, operator, "sizes").items():
        if not isinstance(axes, Mapping):
            raise InvalidKey("sizes", f"sizes of {name} is to be a table of axes")
        for axis, limits in axes.items():
            if axis not in ("elements", LAST) and not AXIS.fullmatch(axis):
                reason = f"{axis!r} is to be the number of an axis, last, or elements"
                raise InvalidKey(axis, reason, ("elements", LAST))
            _check_limits(limits, "sizes", INTEGERS)
            where = "elements" if axis == "elements" else f"axis {axis}"
            what = f"{where} of {name!r} {_show_limits(limits)}, or dynamic"
            has = partial(_find_size, axis, limits)
            yield Form(what, forms.any_operand(has, name, operator=operator))


def _find_size(axis: str, limits: Mapping[str, int], value: Value) -> str | None:
    """A value of other sizes than the limits allow."""
    shown = f"{value.name!r} has the shape {show_shape(value.shape)}"
    if value.shape is None:
        return shown
    at, sizes = -1 if axis == LAST else axis, value.shape
    if at != "elements":
        if not -len(sizes) <= int(at) < len(sizes):
            return None
        sizes = (sizes[int(at)],)
    if not all(isinstance(d, int) for d in sizes):
        return shown
    return shown if _is_beyond(prod(sizes), limits) else None


def read_attributes(value: Any, operator: Operator) -> Iterable[Form]:
    """The key ``attributes``: the values that each takes, or their limits."""
    if not isinstance(value, Mapping):
        raise InvalidKey("attributes", "attributes is to be a table by attribute")
    for name, allowed in value.items():
        if name not in operator.attributes:
            reason = f"{operator.name} has no attribute {name!r}"
            raise InvalidKey(name, reason, operator.attributes)
        kinds = ATTRIBUTE_KINDS.get(str(operator.raw.attributes[name].type).rpartition(".")[2], ())
        if not kinds:
            raise InvalidKey(name, f"{name} is a tensor or a graph, which has no constraints here")
        if isinstance(allowed, Mapping):
            if str in kinds:
                raise InvalidKey(name, f"{name} is a string: list the values that it takes")
            _check_limits(allowed, name, kinds, ("symmetric",))
        else:
            _check_choices(name, allowed, (*kinds, str) if name in AXES else kinds)
        is_limited = isinstance(allowed, Mapping)
        what = _show_limits(allowed) if is_limited else f"other than {_any(_as_list(allowed))}"
        has = partial(_find_attribute, name, allowed)
        if allowed == []:
            yield Form(repr(name), has, advice=f"Leave {name} out where the model is exported")
        else:
            yield Form(f"{name!r} {what}", has, advice=f"Change {name} where the model is exported")


def _check_choices(name: str, allowed: Any, kinds: tuple[type, ...]) -> None:
    """Refuse values that an attribute cannot have, which would refuse every node."""
    for choice in _as_list(allowed):
        for item in _as_list(choice):
            if str in kinds and int in kinds and item != LAST and isinstance(item, str):
                raise InvalidKey(item, f"{name} has no axis {item!r}", (LAST,))
            if not isinstance(item, kinds) or isinstance(item, bool):
                kind = KIND_NAMES.get(kinds, "an integer, or last")
                raise InvalidKey(name, f"{name} has no value {item!r}: it is {kind}")


def _find_attribute(name: str, allowed: Any, call: Call) -> bool | str:
    """An attribute whose value is not allowed."""
    value = call.attrs.get(name)
    if value is None:
        return False
    items = value if isinstance(value, tuple) else (value,)
    shown = str(list(value)) if isinstance(value, tuple) else repr(value)
    if isinstance(allowed, Mapping):
        half = len(items) // 2
        is_uneven = allowed.get("symmetric") and items[:half] != items[half:]
        return (is_uneven or any(_is_beyond(i, allowed) for i in items)) and shown
    choices = [tuple(c) if isinstance(c, list) else c for c in _as_list(allowed)]
    if LAST in choices:
        shape = call.x.shape
        choices += [-1] if shape is None else [-1, len(shape) - 1]
    if value in choices or (isinstance(value, tuple) and all(i in choices for i in value)):
        return False
    return shown


def _check_limits(
    limits: Any, key: str, kinds: tuple[type, ...], more: Sequence[str] = ()
) -> None:  # fmt: skip
    if not isinstance(limits, Mapping):
        raise InvalidKey(key, f"{limits!r} is to be a table with {_any((*LIMITS, *more))}")
    for limit, value in limits.items():
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        if limit not in (*LIMITS, *more):
            raise InvalidKey(limit, f"there is no limit {limit!r}", (*LIMITS, *more))
        if limit == "symmetric":
            if not isinstance(value, bool):
                raise InvalidKey(key, "symmetric is to be true or false")
        elif not is_number:
            raise InvalidKey(key, f"{limit} is to be {KIND_NAMES[kinds]}, not {value!r}")
        elif limit == "multiple_of" and value <= 0:
            raise InvalidKey(key, f"multiple_of is to be positive, not {value!r}")


def _is_beyond(size: Any, limits: Mapping[str, Any]) -> bool:
    """Whether a number lies outside of limits."""
    least, most = limits.get("least", size), limits.get("most", size)
    return bool(not least <= size <= most or size % limits.get("multiple_of", 1))


def _show_limits(limits: Mapping[str, Any]) -> str:
    """What lies outside of limits."""
    words = {
        "least": "less than {}", "most": "more than {}", "multiple_of": "no multiple of {}",
        "symmetric": "other at both ends",
    }  # fmt: skip
    return _any(words[name].format(value) for name, value in limits.items() if value is not False)


def read_dynamic(value: Any, operator: Operator) -> Iterable[Form]:
    """The key ``dynamic_shapes``: false, or the axes by operand that may be dynamic."""
    if isinstance(value, bool):
        return [] if value else forms.require_static()
    if not isinstance(value, Mapping):
        raise InvalidKey("dynamic_shapes", "dynamic_shapes is to be true, false, or a table")
    return [form for name, axes in value.items() for form in _read_axes(name, axes, operator)]


def _read_axes(name: Any, axes: Any, operator: Operator) -> Sequence[Form]:
    """The axes of an operand that may be dynamic; the others are to have numbers."""
    check_name(operator, name, "dynamic_shapes")
    if not isinstance(axes, list) or not all(type(a) is int or a == LAST for a in axes):
        raise InvalidKey(name, f"dynamic_shapes of {name} is to be a list of axes")
    axes = [-1 if a == LAST else a for a in axes]

    def static(call: Call) -> Iterable[int]:
        ranks = (len(v.shape or ()) for v in call.find_named(name, operator))
        rank = next(ranks, 0)
        return [a for a in range(rank) if a not in axes and a - rank not in axes]

    return forms.require_sizes(name, static, operator)


def other_elements(types: frozenset[DType]) -> Form:
    """The key ``element_types`` of a file: those of all tensors but constants."""

    def has(call: Call) -> bool | str:
        for value in call.values:
            if value.name and value.tensor is None and value.dtype not in types:
                shown = value.dtype.value if value.dtype else "of unknown type"
                return f"{value.name!r} is {shown}"
        return False

    listed = ", ".join(sorted(d.value for d in types))
    return Form("other element types", has, advice=f"It takes {listed}")


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _any(values: Iterable[Any]) -> str:
    return " or ".join(map(str, values))


KEYS: Mapping[str, Callable[[Any, Operator], Iterable[Form]]] = {
    "ranks": read_ranks,
    "attributes": read_attributes,
    # operands that are to be constants, optional ones that are not to be there, and zeros
    "constant": partial(read_names, "constant", forms.require_constants),
    "absent": partial(read_names, "absent", forms.refuse_operands),
    "zero": partial(read_names, "zero", forms.require_zeros),
    "sizes": read_sizes,
    "dynamic_shapes": read_dynamic,
}
