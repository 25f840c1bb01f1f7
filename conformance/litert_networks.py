"""Every network of testing/networks.py as a file of TensorFlow Lite, run in LiteRT beside MXNet."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import serde
from serde.errors import SerdeError
from serde.formats.tflite.from_ir import from_ir
from testing.networks import VISION, Network, build, compute, export, feeds, smallest

from .matrix import Cell
from .networks import KINDS
from .record import REFUSED, WRONG, Outcome

TOLERANCE, CHANGE, SHARE = 1e-5, 1e-7, 3
KERNELS = {"XNNPACK": True, "without": False}
HEADER = f"""# Networks in LiteRT

Made by `python -m conformance networks/litert`. Every network is built in MXNet 1.9.1 with random
weights, at a small image size, exported, converted to TensorFlow Lite with one sample, and run in
LiteRT with XNNPACK's kernels and without. The error is the largest difference from MXNet in terms
of the largest number of the output; the bound is {TOLERANCE:g}, and {SHARE} times what a change of
the input by {CHANGE:g} of it does in MXNet. Operators are those of the file.

| network | operators | `TRANSPOSE` | error with XNNPACK | without | bound |
|---|---|---|---|---|---|"""


class LitertNetworks(Cell):
    """Operators and errors, or the reason of a refusal."""

    seconds = 1200

    @cached_property
    def worker(self) -> Any:
        """The process that runs files."""
        from serde.bridges.litert import LitertWorker

        return LitertWorker()

    def cases(self) -> list[str]:
        return [n for names in KINDS.values() for n in names]

    def run(self, name: str) -> dict[str, Any]:
        network = build(name, smallest(name) if name in VISION else None)
        inputs = feeds(network, 1)
        with tempfile.TemporaryDirectory() as folder:
            symbol, _ = export(network, folder)
            graph = serde.load(symbol, inputs={k: v.shape for k, v in inputs.items()})
            path = str(Path(folder) / "net.tflite")
            try:
                serde.save(graph, path)
            except SerdeError as error:
                return {"refused": " ".join(str(error).split())}
            expected = compute(network, inputs)
            arrays = [inputs[v.name].astype(v.type.numpy) for v in graph.inputs]
            errors = {
                kernels: distance(expected, self.worker.run(path, arrays, delegates=delegates))
                for kernels, delegates in KERNELS.items()
            }
            counts = Counter(node.op for node in from_ir(graph).nodes)
        bound = TOLERANCE
        if max(errors.values()) >= bound:
            bound += SHARE * find_change(network, inputs, expected)
        sizes = {"operators": counts.total(), "transposes": counts["TRANSPOSE"]}
        return {**sizes, "errors": errors, "bound": bound}

    def outcomes(self, case: str, row: Any) -> dict[str, Outcome]:
        if "errors" not in row:
            kind = REFUSED if "refused" in row else WRONG
            return {"": Outcome.of(kind, row.get("refused") or row["failed"])}
        return {k: Outcome.judge_error(e, row["bound"]) for k, e in row["errors"].items()}


def distance(expected: Sequence[Any], got: Sequence[Any]) -> float:
    """The largest difference in terms of the largest number of an output."""
    return max(
        float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(expected, got, strict=True)
    )


def find_change(network: Network, inputs: Mapping[str, Any], expected: Sequence[Any]) -> float:
    """What a small change of the inputs does in MXNet."""
    return distance(expected, compute(network, change_little(inputs)))


def change_little(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs that are changed by a share of each number."""
    draws = np.random.default_rng(0)
    return {
        name: (x * (1 + CHANGE * draws.choice([-1, 1], x.shape))).astype(x.dtype)
        if x.dtype.kind == "f" else x
        for name, x in inputs.items()
    }  # fmt: skip


def page(known: Mapping[str, Any]) -> Iterator[str]:
    """The lines of docs/results/networks-litert.md."""
    yield HEADER
    for name, row in known.items():
        if "errors" not in row:
            yield f"| {name} | refused: {row.get('refused') or row['failed']} | | | | |"
            continue
        errors = " | ".join(f"{row['errors'][kernels]:.1e}" for kernels in KERNELS)
        sizes = f"{row['operators']} | {row['transposes']}"
        yield f"| {name} | {sizes} | {errors} | {row['bound']:.0e} |"
    yield ""
