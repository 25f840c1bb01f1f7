"""Cells of the matrix: an option, or a family of them, on every model.

A row has the outcome of each variant. Wrong is what computes other numbers, does not load, or was
to change the model and did not, without a word (``silent``). A refusal is ``needless`` where the
network itself, built for several samples, shows that what was asked for is possible.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from serde.errors import SerdeError
from testing.onnx_live import OPTIMIZED, PLAIN, run_at

from ..matrix import Cell, NotRun, last_line, reason
from ..record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome
from .models import Arrays, Model, list_models, open_model

Variants = Mapping[str, Callable[[Model, Path], str | None]]  # a property: how it fails, or None
IS_TRIED = {  # by family: whether it is tried on a model of that name
    "rebatch": lambda name: not name.startswith("precision"),
    "precision": lambda name: not name.startswith("onnx/simple"),
    "editing": lambda name: "precision/" not in name,
    "quantized": lambda name: name.startswith(("image", "tokens", "kinds", "mxnet", "file")),
    "opsets": lambda name: "precision/" not in name,
    "parts": lambda name: not name.startswith("if/precision"),
    "comparison": lambda name: not name.startswith("if/precision"),
}
ROUNDED = 1e-3  # a bound above it is of numbers that are rounded


class Options(Cell):
    """What becomes of a model by each property of a family of options."""

    seconds = 900

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.family = name.partition("/")[2]
        module = import_module(f"conformance.options.{self.family}")
        self.variants: Variants = module.PROPERTIES

    def cases(self) -> list[str]:
        return [name for name in list_models() if IS_TRIED[self.family](name)]

    def run(self, case: str) -> dict[str, str]:
        try:
            model = open_model(case)
            run(model.proto, model.feeds)
        except Exception as problem:  # of what the runtime itself cannot run there is no truth
            return {"": str(Outcome.of(NOT_RUN, last_line(problem)))}
        return {name: str(examine(check, model)) for name, check in self.variants.items()}

    def outcomes(self, case: str, row: Mapping[str, str]) -> dict[str, Outcome]:
        return {name: Outcome.parse(text) for name, text in row.items()}

    def make_failed_row(self, why: str) -> dict[str, str]:
        return {"": str(Outcome.of(WRONG, why))}

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**{n: r for n, r in before.items() if n.startswith("file/")}, **rows}


class Needless(Exception):
    """A refusal of what is possible."""


def examine(check: Callable[[Model, Path], str | None], model: Model) -> Outcome:
    """The outcome of one property of a model."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            failure = check(model, Path(folder))
        except Needless as error:
            return Outcome.of(REFUSED, f"needless: {error}")
        except NotRun as error:
            return Outcome.of(NOT_RUN, error)
        except SerdeError as error:
            return Outcome.of(REFUSED, reason(error))
        except Exception as error:  # whatever else is a defect: a file that does not load, say
            return Outcome.of(WRONG, f"{type(error).__name__}: {last_line(error)}")
    return Outcome.of(WRONG, failure) if failure else Outcome(RIGHT)


def run(model: onnx.ModelProto | Path, feeds: Arrays) -> list[Any]:
    """What ONNX Runtime computes without its optimizers."""
    return run_at(PLAIN, model, feeds)


def run_optimized(model: onnx.ModelProto | Path, feeds: Arrays) -> list[Any]:
    """What ONNX Runtime computes as users run it."""
    return run_at(OPTIMIZED, model, feeds)


def write(model: Model, folder: Path, name: str = "source.onnx") -> Path:
    """The file of a model."""
    path = folder / name
    onnx.save(model.proto, path)
    return path


def differ(got: Sequence[Any], expected: Sequence[Any], bound: float = 1e-4) -> str | None:
    """How outputs differ by more than a share of their scale; None where they do not."""
    if len(got) != len(expected):
        return f"{len(got)} outputs, not {len(expected)}"
    for place, (a, b) in enumerate(zip(got, expected, strict=True)):
        if isinstance(b, (list, dict)):
            if str(a) != str(b):
                return f"output {place} differs"
        elif (how := _differ(np.asarray(a), np.asarray(b), bound)) is not None:
            return f"output {place}: {how}"
    return None


def _differ(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], bound: float) -> str | None:
    if a.shape != b.shape:
        return f"shape {a.shape}, not {b.shape}"
    if b.dtype.kind not in "fc":
        if bound > ROUNDED or np.array_equal(a, b):  # a choice between like numbers may change
            return None
        return f"{np.mean(a != b):.0%} of integers differ"
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite):
        return "not finite where the source is"
    scale = float(np.abs(b[finite]).max(initial=0)) or 1.0
    off = float(np.abs(a - b)[finite].max(initial=0)) / scale
    return f"off by {off:.0e} of scale" if off > bound else None
