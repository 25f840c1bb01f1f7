"""Checks of a node's form, made of the keys that an operator has in a backend file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from serde.ir.graph import DType, Node, Value, show_shape
from serde.legalize.target import IllegalForm
from serde.spec.schema import Operator

LIMITS = ("least", "most", "multiple_of")
AXIS = re.compile(r"-?\d+")
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
        if name not in known:
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


def values_of(node: Node, operator: Operator, name: str) -> list[Value]:
    """The operands, or the results, of a node under a name of the schema."""
    matches = []
    for formals, values in ((operator.inputs, node.inputs), (operator.outputs, node.outputs)):
        for index, value in enumerate(values):
            formal = formals[min(index, len(formals) - 1)]
            if value is not None and value.name and formal.name == name:
                matches.append(value)
    return matches


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


def rank_checks(value: Any, operator: Operator) -> Iterable[IllegalForm]:
    """The key ``ranks``: the number of dimensions of operands."""
    for name, ranks in by_operand(value, operator, "ranks").items():
        allowed = [ranks] if isinstance(ranks, int) else ranks
        if not isinstance(allowed, list) or not all(type(r) is int for r in allowed):
            raise InvalidKey("ranks", "ranks is to be a number or a list of numbers")
        yield _check_each(operator, name, partial(_rank_reason, allowed))


def _rank_reason(ranks: Sequence[int], value: Value) -> str | None:
    if value.shape is not None and len(value.shape) in ranks:
        return None
    return (
        f"{value.name!r} has the shape {show_shape(value.shape)}; its rank is to be {_any(ranks)}"
    )


def named_checks(
    key: str, reason: Callable[[str, Value], str | None], value: Any, operator: Operator
) -> Iterable[IllegalForm]:
    """A key that lists names of operands and results: why a value under such a name is refused."""
    if not isinstance(value, list):
        raise InvalidKey(key, f"{key} is to be a list of names of operands")
    for name in [check_name(operator, name, key) for name in value]:
        yield _check_each(operator, name, partial(reason, name))


def _constant_reason(name: str, value: Value) -> str | None:
    return None if value.tensor is not None else f"{value.name!r} is not constant"


def _zero_reason(name: str, value: Value) -> str | None:
    if (reason := _constant_reason(name, value)) is not None:
        return reason
    return f"{value.name!r} is not zero" if value.array().astype(float).any() else None


def _presence_reason(name: str, value: Value) -> str:
    return f"it has the optional {name!r}, {value.name!r}"


def size_checks(value: Any, operator: Operator) -> Iterable[IllegalForm]:
    """The key ``sizes``: limits of axes, by operand and axis, and of the number of elements."""
    for name, axes in by_operand(value, operator, "sizes").items():
        if not isinstance(axes, Mapping):
            raise InvalidKey("sizes", f"sizes of {name} is to be a table of axes")
        for axis, limits in axes.items():
            if axis != "elements" and not AXIS.fullmatch(axis):
                raise InvalidKey(axis, f"{axis!r} is to be the number of an axis, or elements")
            _check_limits(limits, "sizes", INTEGERS)
            yield _check_each(operator, name, partial(_size_reason, axis, limits))


def _size_reason(axis: str, limits: Mapping[str, int], value: Value) -> str | None:
    if value.shape is None:
        return f"the rank of {value.name!r} is not known"
    size: Any = 1
    if axis == "elements":
        for d in value.shape:
            size = size * d if isinstance(d, int) and size is not None else None
    elif -len(value.shape) <= int(axis) < len(value.shape):
        size = value.shape[int(axis)]
    else:
        return None
    what = "its elements" if axis == "elements" else f"its axis {axis}"
    if isinstance(size, int) and (reason := _beyond(size, limits)) is None:
        return None
    shown = reason if isinstance(size, int) else "is dynamic"
    return f"{value.name!r} has the shape {show_shape(value.shape)}; {what} {shown}"


def attribute_checks(value: Any, operator: Operator) -> Iterable[IllegalForm]:
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
            _check_choices(name, allowed, kinds)
        yield partial(_attribute_reason, name, allowed)


def _check_choices(name: str, allowed: Any, kinds: tuple[type, ...]) -> None:
    """Refuse values that an attribute cannot have, which would refuse every node."""
    for choice in _as_list(allowed):
        for item in _as_list(choice):
            if not isinstance(item, kinds) or isinstance(item, bool):
                raise InvalidKey(name, f"{name} has no value {item!r}: it is {KIND_NAMES[kinds]}")


def _attribute_reason(name: str, allowed: Any, node: Node) -> str | None:
    value = node.attrs.get(name)
    if value is None:
        return None
    items = value if isinstance(value, tuple) else (value,)
    if isinstance(allowed, Mapping):
        half = len(items) // 2
        if allowed.get("symmetric") and items[:half] != items[half:]:
            return f"{name}={_show(value)} is not the same at both ends"
        reason = next((r for i in items if (r := _beyond(i, allowed))), None)
        return None if reason is None else f"{name}={_show(value)} {reason}"
    choices = [tuple(c) if isinstance(c, list) else c for c in _as_list(allowed)]
    if value in choices or (isinstance(value, tuple) and all(i in choices for i in value)):
        return None
    return f"{name}={_show(value)}; it takes {_any(choices)}"


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


def _beyond(size: Any, limits: Mapping[str, Any]) -> str | None:
    if "least" in limits and size < limits["least"]:
        return f"is less than {limits['least']}"
    if "most" in limits and size > limits["most"]:
        return f"is more than {limits['most']}"
    if "multiple_of" in limits and size % limits["multiple_of"]:
        return f"is no multiple of {limits['multiple_of']}"
    return None


def dynamic_checks(value: Any, operator: Operator) -> Iterable[IllegalForm]:
    """The key ``dynamic_shapes``: false where this operator takes static shapes only."""
    if not isinstance(value, bool):
        raise InvalidKey("dynamic_shapes", "dynamic_shapes is to be true or false")
    if not value:
        yield _dynamic_reason


def _dynamic_reason(node: Node) -> str | None:
    for value in (*node.inputs, *node.outputs):
        if value is not None and value.name and not value.is_static:
            return f"{value.name!r} has the shape {show_shape(value.shape)}, which is not static"
    return None


def element_type_check(name: str, types: frozenset[DType]) -> IllegalForm:
    """The key ``element_types`` of a file: those of all tensors but constants."""

    def check(node: Node) -> str | None:
        for value in (*node.inputs, *node.outputs):
            if value is None or not value.name or value.tensor is not None:
                continue
            if value.dtype not in types:
                shown = value.dtype.value if value.dtype else "of unknown type"
                return f"{name} has no tensors of {shown} elements: {value.name!r}"
        return None

    return check


def _check_each(
    operator: Operator, name: str, reason: Callable[[Value], str | None]
) -> IllegalForm:  # fmt: skip
    """A check of every value that a node has under a name of the schema."""
    return lambda node: next(
        (text for v in values_of(node, operator, name) if (text := reason(v)) is not None), None
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _show(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else repr(value)


def _any(values: Iterable[Any]) -> str:
    return " or ".join(map(str, values))


CHECKS: Mapping[str, Callable[[Any, Operator], Iterable[IllegalForm]]] = {
    "ranks": rank_checks,
    "attributes": attribute_checks,
    # operands that are to be constants, optional ones that are not to be there, and zeros
    "constant": partial(named_checks, "constant", _constant_reason),
    "absent": partial(named_checks, "absent", _presence_reason),
    "zero": partial(named_checks, "zero", _zero_reason),
    "sizes": size_checks,
    "dynamic_shapes": dynamic_checks,
}
