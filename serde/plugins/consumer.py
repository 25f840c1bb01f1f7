"""A consumer: a runtime, a compiler or a device that reads the files of a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from serde.ir.graph import EMPTY, IR_OPSET, Graph

from .deferred import Deferred

if TYPE_CHECKING:
    from serde.legalize.target import Target

EVERY = range(7, IR_OPSET + 1)  # opsets that are written
Pass = Callable[[Graph], Graph]
QDQ: Mapping[str, Any] = MappingProxyType({"integers": "qdq"})
FOLDED: Mapping[str, Any] = MappingProxyType({"fold_batchnorm": True})


@dataclass(frozen=True, eq=False)
class Consumer:
    """What is written for a consumer, and what its users are told.

    Attributes:
        name: what users call it, as the ``profile`` they write for.
        title: what messages and pages call it.
        target: what it accepts, or where that is; None: every operator of the opset.
        opset: the opset that is written unless one is asked for; the target's if left out.
        opsets: those that may be asked for; the target's if left out, or else its only one.
        also_called: other names, for which this one is suggested.
        reading: options that sources are read with unless the caller gives them.
        passes: what is done to the graph of the IR before it is lowered.
        skips: passes of the format's writer that it does without.
        decomposed: operators that are written as older ones.
        functions: which functions of the source its files have.
        integer_kernels: whether products of integers in units of 1 are QLinearConv and
            QLinearMatMul.
        runs_in_onnxruntime: whether its files avoid the forms that ONNX Runtime gets wrong.
        prepare: what is done to the graph of legal operators.
        next_step: how a result is run; ``{name}`` and ``{stem}`` stand for its path.
    """

    name: str
    title: str = ""
    target: Target | Deferred | None = None
    opset: int | None = None
    opsets: range | None = None
    also_called: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    passes: tuple[Pass, ...] = ()
    skips: frozenset[str] = frozenset()
    decomposed: frozenset[str] = frozenset()
    functions: str = "inline"
    integer_kernels: bool = False
    runs_in_onnxruntime: bool = True
    prepare: Pass | None = None
    next_step: str = ""

    @classmethod
    def of(cls, declared: Any, name: str) -> Consumer:
        """The consumer that a plug-in declares, or that its target makes."""
        if isinstance(declared, Consumer):
            return declared
        return cls(name, target=declared, runs_in_onnxruntime=False)

    def get_target(self) -> Target | None:
        """What it accepts, imported."""
        return cast("Target | None", getattr(self.target, "value", self.target))

    def default_opset(self) -> int:
        """The opset that is written unless one is asked for."""
        target = self.get_target()
        return self.opset or (17 if target is None else target.opset)

    def known_opsets(self) -> range | None:
        """The opsets that may be asked for; None: all that are written."""
        target = self.get_target()
        if target is None or self.opsets is not None:
            return self.opsets
        return target.opsets or range(target.opset, target.opset + 1)
