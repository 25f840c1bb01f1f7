"""A rule: a conversion function, and what its signature declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar, get_origin

from serde.ir.geometry import Ints
from serde.ir.graph import EMPTY
from serde.rewrite.subgraphs import Body

NONE: frozenset[str] = frozenset()
Function = Callable[..., Any]
Keyed = Mapping[str, Any]
T = TypeVar("T")
HINT = "hint"
Hint = Annotated[T, HINT]  # the type of a rule's parameter that a pass sets, see ``with_hints``


class Attribute(NamedTuple):
    """One attribute a rule declares: its type, and its default where it has one."""

    kind: Any
    default: Any = inspect.Parameter.empty

    @classmethod
    def of(cls, parameter: inspect.Parameter) -> Attribute:
        """Read a keyword-only parameter; without annotation the default's type is the type."""
        kind = parameter.annotation
        if kind is parameter.empty:
            kind = type(parameter.default)
        return cls(Ints if kind is tuple else kind, parameter.default)

    @property
    def is_required(self) -> bool:
        """Whether a node must set it."""
        return self.default is inspect.Parameter.empty


def always(attrs: Keyed) -> bool:
    """Of any attributes."""
    return True


def never(attrs: Keyed) -> bool:
    """Of no attributes."""
    return False


@dataclass(frozen=True)
class Rule:
    """A conversion function; its signature is read when it is first asked for."""

    function: Function
    ignore: frozenset[str]
    only: Mapping[str, tuple[Any, ...]]
    sizes: Callable[[Keyed], bool] = always  # by attributes: whether it looks at sizes or contents

    @classmethod
    def of(
        cls, function: Function, ignore: Iterable[str] = (), only: Keyed = EMPTY,
        sizes: Callable[[Keyed], bool] = always,
    ) -> Rule:  # fmt: skip
        """The rule that ``function`` is."""
        return cls(function, frozenset(ignore), only, sizes)

    @cached_property
    def _parameters(self) -> tuple[inspect.Parameter, ...]:
        return tuple(inspect.signature(self.function, eval_str=True).parameters.values())

    @cached_property
    def attributes(self) -> Mapping[str, Attribute]:
        """The attributes the signature declares."""
        keywords = (p for p in self._parameters if p.kind is p.KEYWORD_ONLY)
        return MappingProxyType({p.name: Attribute.of(p) for p in keywords if not _is_hint(p)})

    @cached_property
    def known_attributes(self) -> frozenset[str]:
        """The attributes it declares or ignores."""
        return self.ignore.union(self.attributes)

    @cached_property
    def hints(self) -> frozenset[str]:
        """The parameters that passes set."""
        return frozenset(p.name for p in self._parameters if _is_hint(p))

    @cached_property
    def takes_all(self) -> bool:
        """Whether it takes attributes it does not declare (``**attrs``), as they stand."""
        return any(p.kind is p.VAR_KEYWORD for p in self._parameters)

    @cached_property
    def bodies(self) -> frozenset[str]:
        """The attributes it takes as a ``Body``."""
        return frozenset(n for n, a in self.attributes.items() if a.kind is Body)

    @cached_property
    def operands(self) -> tuple[int, int | None]:
        """The fewest and the most operands; None: any number."""
        operands = [p for p in self._parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
        fewest = sum(p.default is p.empty for p in operands)
        variadic = any(p.kind is p.VAR_POSITIONAL for p in self._parameters)
        return (max(fewest, 1), None) if variadic else (fewest, len(operands))


def _is_hint(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    return get_origin(kind) is Annotated and HINT in kind.__metadata__
