"""A network from MXNet to ONNX, back to MXNet and once more to ONNX, each result run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

import serde
from testing import networks
from testing.light_models import feeds
from testing.mxnet_live import live_mxnet, run_symbol
from testing.onnx_live import error, run_model

Arrays = list[np.ndarray]


class Trip(NamedTuple):
    """The errors of the ONNX model, the MXNet model made of it and the ONNX model made of that.

    ``renamed`` says what is called differently the second time.
    """

    first: float
    second: float
    third: float
    renamed: list[str]


def there_and_back(name: str, folder: Path, size: int | None = None) -> Trip:
    """Take the network of that name there and back twice."""
    network = networks.build(name, size)
    inputs = networks.feeds(network, 2)
    expected = networks.compute(network, inputs)
    source, params = networks.export(network, folder)
    shapes = {n: (s, inputs[n].dtype) for n, s in networks.shapes(network).items()}
    paths = [folder / n for n in ("1.onnx", "2-symbol.json", "3.onnx")]
    serde.convert(source, paths[0], inputs=shapes)
    serde.convert(paths[0], paths[1])
    serde.convert(paths[1], paths[2], inputs=shapes)
    first, third = (onnx.load(p) for p in (paths[0], paths[2]))
    arrays = networks.load_params(folder / "2-0000.params")
    again = run_symbol(paths[1].read_text(), arrays, inputs)
    return Trip(
        errors(run_model(first, inputs), expected),
        errors(again, expected),
        errors(run_model(third, inputs), expected),
        [
            *renamed_symbol(source, paths[1], arrays),
            *renamed_model(first, third, networks.load_params(params)),
        ],
    )


def from_onnx(path: Path, folder: Path) -> tuple[int, float]:
    """Convert an ONNX model and run it; how many nodes it became, and the error."""
    model = onnx.load(path)
    inputs = feeds(model)
    report = serde.convert(path, folder / "m-symbol.json")
    arrays = networks.load_params(folder / "m-0000.params")
    got = run_symbol((folder / "m-symbol.json").read_text(), arrays, inputs)
    return sum(report.operators.values()), errors(got, run_model(model, inputs))


def errors(got: Arrays, expected: Arrays) -> float:
    """The largest difference of an output in terms of its largest number."""
    return max(error(a, b) for a, b in zip(got, expected, strict=True))


def renamed_symbol(before: Path, after: Path, weights: Iterable[str]) -> Iterator[str]:
    """Which of a symbol's inputs and outputs are called differently; MXNet orders inputs itself."""
    old, new = (live_mxnet().sym.load(str(p)) for p in (before, after))
    if old.list_outputs() != new.list_outputs():
        yield "outputs in MXNet"
    if not set(new.list_inputs()) - set(weights) <= set(old.list_inputs()):
        yield "inputs in MXNet"


def renamed_model(
    before: onnx.ModelProto, after: onnx.ModelProto, weights: Iterable[str]
) -> Iterator[str]:
    """Which kinds of names of an ONNX model are not those of another.

    Of the weights those count that are the source's, or are made of one of the source's.
    """
    for kind in ("input", "output", "initializer"):
        old, new = ([v.name for v in getattr(m.graph, kind)] for m in (before, after))
        if kind == "initializer":
            old, new = ([n for n in ns if n.split("/")[0] in weights] for ns in (old, new))
        if old != new if kind == "output" else set(old) != set(new):
            yield f"{kind}s in ONNX"
