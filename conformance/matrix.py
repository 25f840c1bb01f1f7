"""The matrix: sources of cases, targets they are converted to, and the cells that are run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from serde.errors import SerdeError, Unconvertible
from serde.ir.graph import Graph

from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome

Array = np.ndarray[Any, Any]


class NotRun(Exception):
    """The runtime has the model and cannot run it, for a reason that is its own."""


@dataclass(frozen=True)
class Sample:
    """A model in the IR with inputs and the outputs its own framework computes for them.

    ``differs(wanted, got)`` says how outputs differ, or None. ``lowest`` is the lowest opset that
    is tried. ``ways`` are named changes of the graph that are run besides (named sizes, say).
    """

    graph: Graph
    data: Sequence[tuple[Mapping[str, Any], Sequence[Any]]]
    differs: Callable[[Sequence[Any], Sequence[Any]], str | None]


class Source(ABC):
    """A set of models that can be enumerated."""

    name: str

    @abstractmethod
    def cases(self) -> list[str]:
        """The names of all cases, in a fixed order."""

    @abstractmethod
    def sample(self, case: str) -> Sample:
        """Read a case. Raises SerdeError where it is refused, NotRun where it cannot be judged."""


class Target(ABC):
    """A format, at the versions of it that are tried, and the runtime that runs its files."""

    name: str
    variants: tuple[str, ...] = ("",)

    @abstractmethod
    def run(self, graph: Graph, feeds: Mapping[str, Any], variant: str) -> Sequence[Any]:
        """Convert a graph of the IR and run it. Raises SerdeError where refused, NotRun."""

    def comparable(self, wanted: Any, got: Any) -> Any:
        """``got`` as it is to be compared, where the runtime has other types than ONNX."""
        return got


SOURCES = {
    "onnx-nodes": ("conformance.onnx_nodes", "NodeTests"),
    "onnx-nodes-constant": ("conformance.onnx_nodes", "ConstantNodeTests"),
    "mxnet-operators": ("conformance.operators", "MXNetOperators"),
    "relay-operators": ("conformance.operators", "RelayOperators"),
}
TARGETS = {
    "onnx": ("conformance.targets", "Onnx"),
    "mxnet": ("conformance.targets", "MXNet"),
    "relay": ("conformance.targets", "Relay"),
    "relax": ("conformance.targets", "Relax"),
}
CELLS = (
    "onnx-nodes/onnx",
    "onnx-nodes-constant/mxnet",
    "onnx-nodes-constant/relay",
    "onnx-nodes-constant/relax",
    "mxnet-operators/onnx",
    "mxnet-operators/mxnet",
    "relay-operators/onnx",
    "relay-operators/relay",
)


def source_of(cell: str) -> Source:
    """The source of a cell, ``SOURCE/TARGET``."""
    module, name = SOURCES[cell.partition("/")[0]]
    return getattr(import_module(module), name)()  # type: ignore[no-any-return]


def target_of(cell: str) -> Target:
    """The target of a cell, ``SOURCE/TARGET``."""
    module, name = TARGETS[cell.partition("/")[2]]
    return getattr(import_module(module), name)()  # type: ignore[no-any-return]


def outcomes(source: Source, target: Target, case: str) -> dict[str, Outcome]:
    """What becomes of one case at every variant of a target."""
    try:
        sample = source.sample(case)
    except NotRun as error:
        return dict.fromkeys(target.variants, Outcome.of(NOT_RUN, error))
    except SerdeError as error:
        return dict.fromkeys(target.variants, Outcome.of(REFUSED, reason(error)))
    except Exception as error:  # a defect of ours counts as a wrong result, whatever it raises
        return dict.fromkeys(target.variants, Outcome.of(WRONG, f"{type(error).__name__}: {error}"))
    return {variant: _outcome(sample, target, variant) for variant in target.variants}


def _outcome(sample: Sample, target: Target, variant: str) -> Outcome:
    for feeds, wanted in sample.data:
        try:
            got = target.run(sample.graph, feeds, variant)
        except NotRun as error:
            return Outcome.of(NOT_RUN, error)
        except SerdeError as error:
            return Outcome.of(REFUSED, reason(error))
        except Exception as error:  # whatever a runtime says of a model that was not refused
            return Outcome.of(WRONG, f"{type(error).__name__}: {last_line(error)}")
        got = [target.comparable(a, b) for a, b in zip(wanted, got, strict=False)]
        if (how := sample.differs(wanted, got)) is not None:
            return Outcome.of(WRONG, how)
    return Outcome(RIGHT)


def reason(error: SerdeError) -> str:
    """A refusal in one line, without the names of nodes."""
    if isinstance(error, Unconvertible):
        return "; ".join(dict.fromkeys(f"{p.op}: {p.reason}" for p in error.problems))
    return str(error)


def last_line(error: Exception) -> str:
    """The last line of a message, which says most in the errors of frameworks."""
    lines = [s.strip() for s in str(error).splitlines() if s.strip() and "[bt]" not in s]
    return lines[-1] if lines else type(error).__name__
