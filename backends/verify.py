"""Compare a partitioned model with the whole one, which runs in its own framework."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from serde.errors import SerdeError
from serde.ir.graph import Graph
from serde.verification import Verification, run_source
from serde.verification.compare_results import find_worst
from serde.verification.input_sets import NORMAL, InputSet
from serde.verification.tolerated import Judge

from .runner import Hybrid

WHOLE_MODEL = "the whole model in ONNX Runtime, as the source's framework is not installed"
NEITHER = "not compared: neither the source's framework nor ONNX Runtime is installed"


def verify_parts(
    source: Any, graph: Graph, folder: str | os.PathLike[str], *,
    runtimes: Mapping[str, Any] | None = None, data: Any = None,
    reading: Mapping[str, Any] | None = None, from_format: str | None = None,
) -> Verification:  # fmt: skip
    """Run the source and its parts on the same inputs, and compare their outputs.

    ``graph`` is the source's graph of the IR, ``reading`` what it was read with, ``from_format``
    its format where the content does not tell. Where the source's
    framework is not installed, that graph runs in ONNX Runtime in its place.

    Raises:
        SerdeError: where a part cannot be run.
    """
    options = dict(reading or {})
    apart = {name: options.pop(name, None) for name in ("params", "inputs", "outputs")}
    run = run_source(
        source, folder, graph=graph, ir=graph, data=data, reading=options, from_format=from_format,
        **apart,
    )  # fmt: skip
    if run.is_missing:
        run = run_source(graph, folder, graph=graph, ir=graph, data=data)
        run.origin = WHOLE_MODEL
        if run.is_missing:
            run.statement = NEITHER
    if run.statement:
        return Verification(False, "", run.inputs, statement=run.statement)
    hybrid = Hybrid(folder, runtimes)
    judge = Judge(run.model, graph, _refuse_probe)
    runs = []
    for inputs, expected in zip(run.sets, run.results, strict=True):
        results = [*hybrid(inputs.feeds).values()]
        runs.append(judge.compare(inputs, results, expected))
        for compared in runs[-1]:
            if compared.reason and inputs.name != NORMAL:
                compared.reason += f" on {inputs.name} inputs"
    return Verification(
        True, run.origin, run.inputs, find_worst(runs), sets=[s.name for s in run.sets],
        settings=["in parts"], not_compared=[*run.not_compared, *judge.not_compared],
    )  # fmt: skip


def _refuse_probe(names: Sequence[str], inputs: InputSet) -> Sequence[Any]:
    raise SerdeError(f"{names[0]!r} is inside a part")
