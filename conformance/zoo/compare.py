"""Convert one network of a model zoo, run it and compare with MXNet: for ``conformance.zoo``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import serde
from conformance.litert_networks import KERNELS, SHARE, change_little
from conformance.litert_networks import TOLERANCE as LITERT_TOLERANCE
from conformance.zoo.draws import Drawing, drawing, noise
from serde import pipeline
from serde.bridges.litert import LitertWorker
from serde.bridges.mxnet import import_mxnet, run
from serde.errors import SerdeError

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Runs = Sequence[tuple[Arrays, Sequence[Array]]]
TOLERANCE = 1e-3  # of the largest number of an output
NUDGE = 1e-4  # by which inputs are changed to see how much a network of integers makes of it
ROUNDING = 1e-5  # between scores of detections that may change places
REASON = 160  # letters of a reason that are kept


@dataclass(frozen=True)
class Run:
    """Inputs by name, and what a conversion for them calls the sizes that may differ."""

    feeds: Arrays
    shapes: Mapping[str, Sequence[int | str]]


@dataclass(frozen=True)
class Sample:
    """An exported network and inputs to run it on.

    ``prefix`` names its symbol and parameters. ``larger`` are further inputs, the more of their
    sizes with a name the better: the first that MXNet takes is run as well, through one
    conversion. ``detects`` says that rows of the outputs are detections. ``rough`` ones compute
    with integers, where one that is rounded the other way spreads from layer to layer: with
    ``integers="qdq"`` their outputs are compared as a whole. ``stand_in`` is what MXNet runs where
    it goes wrong on this one itself, with the same parameters.
    """

    prefix: Path
    feeds: Arrays
    larger: Sequence[Run] = ()
    detects: bool = False
    rough: bool = False
    outputs: tuple[str, ...] = ()
    stand_in: Path | None = None


def live(sample: Sample, feeds: Arrays) -> list[Array]:
    """What MXNet computes."""
    return run(str(sample.stand_in or sample.prefix), feeds, outputs=sample.outputs)


def examine(sample: Sample, folder: Path) -> Iterator[dict[str, Any]]:
    """What became of each conversion: the nodes and the error, or why there is none.

    Without MXNet's exporter first, which may end the process, and then with it.
    """
    drawn = drawing(sample.prefix)
    runs = [(sample.feeds, live(sample, sample.feeds))]
    strict = replace(sample, rough=False)
    row: dict[str, Any] = {"static": _ours(strict, sample.feeds, runs, folder, drawn)}
    if sample.rough:
        row["own"] = perturb(sample, runs[0][1])
        row["qdq"] = _ours(sample, sample.feeds, runs, folder, drawn, integers="qdq")
    for more in sample.larger:
        try:
            runs.append((more.feeds, live(sample, more.feeds)))
        except SerdeError:
            continue  # the network takes no such sizes
        row["named"] = _ours(strict, more.shapes, runs, folder, drawn)
        row["sizes"] = {n: list(s) for n, s in more.shapes.items()}
        break
    yield row
    yield {**row, "theirs": _theirs(sample, runs[0][1], folder)}


def examine_in_litert(sample: Sample, folder: Path) -> Iterator[dict[str, Any]]:
    """What became of a file of TensorFlow Lite for one size: operators, errors and their bound."""
    path = folder / "ours.tflite"
    try:
        serde.convert(sample.prefix, path, inputs=sample.feeds, outputs=sample.outputs or None)
    except SerdeError as error:
        yield {"refused": " ".join(str(error).split())[:1000]}
        return
    graph, _ = pipeline.read(path)
    feeds, expected = sample.feeds, live(sample, sample.feeds)
    arrays = [feeds[v.name].astype(v.type.numpy) for v in graph.inputs]
    worker, errors = LitertWorker(), {}
    for kernels, delegates in KERNELS.items():
        got = worker.run(str(path), arrays, delegates=delegates)
        errors[kernels] = difference(got, expected, sample)[0]
    if sample.rough:
        bound = SHARE * perturb(sample, expected)
    else:
        bound = LITERT_TOLERANCE
        if max(errors.values()) >= bound:
            changed = live(sample, change_little(feeds))
            bound += SHARE * difference(changed, expected, sample)[0]
    yield {"operators": len(graph.nodes), "errors": errors, "bound": bound}


def perturb(sample: Sample, expected: Sequence[Array]) -> float:
    """How far MXNet is from itself when each input is changed a little."""
    generator = np.random.default_rng(0)
    feeds = {
        n: (x + NUDGE * x.std() * generator.standard_normal(x.shape)).astype(x.dtype)
        for n, x in sample.feeds.items()
    }
    return difference(live(sample, feeds), expected, sample)[0]


def _ours(
    sample: Sample, inputs: Mapping[str, Any], runs: Runs, folder: Path, drawn: Drawing | None,
    **options: str,
) -> dict[str, Any]:  # fmt: skip
    path = folder / "ours.onnx"
    for old in folder.glob("ours.onnx*"):
        old.unlink()
    specs = {
        name: shape if isinstance(shape, np.ndarray) else (tuple(shape), sample.feeds[name].dtype)
        for name, shape in inputs.items()
    }
    prefix, outputs, random = sample.prefix, sample.outputs, "refuse"
    if drawn is not None:
        prefix, outputs, random = drawn.prefix, (*drawn.shown, *drawn.drawn), "input"
    try:
        options |= {"random": random}
        serde.convert(prefix, path, inputs=specs, outputs=outputs or None, **options)
    except SerdeError as error:
        return {"refused": str(error)[:1000]}
    nodes = len(pipeline.read(path)[0].nodes)
    try:
        session = onnxruntime.InferenceSession(str(path), _settings())
        got = [_run(session, feeds | noise(session, feeds)) for feeds, _ in runs]
    except Exception as error:  # onnxruntime's errors have no common base but this
        return {"nodes": nodes, "failed": str(error)[:1000]}
    if drawn is not None:  # what MXNet makes of the same draws
        count = len(drawn.shown)
        draws = [dict(zip(drawn.drawn, ys[count:], strict=True)) for ys in got]
        runs = [
            (feeds, run(str(drawn.rest), {**feeds, **more}))
            for (feeds, _), more in zip(runs, draws, strict=True)
        ]
        got = [ys[:count] for ys in got]
    pairs = zip(got, (expected for _, expected in runs), strict=True)
    errors = [difference(y, expected, sample) for y, expected in pairs]
    return {"nodes": nodes, "error": max(e for e, _ in errors), "of": [n for _, n in errors]}


def _run(session: onnxruntime.InferenceSession, feeds: Arrays) -> list[Array]:
    read = [i.name for i in session.get_inputs()]
    return list(session.run(None, {n: feeds[n] for n in read}))


def _settings() -> onnxruntime.SessionOptions:
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 2
    return settings


def _theirs(sample: Sample, expected: Sequence[Array], folder: Path) -> dict[str, Any]:
    """MXNet's own exporter on the same network."""
    from conformance import mxnet_exporter

    path, feeds = folder / "theirs.onnx", sample.feeds
    mxnet_exporter.write_raw()
    try:
        mxnet_exporter.export(str(sample.prefix), str(path), feeds)
        nodes = len(pipeline.read(path)[0].nodes)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {str(error)[:REASON]}"}
    try:
        got = _run(onnxruntime.InferenceSession(str(path), _settings()), feeds)
    except Exception as error:
        return {"nodes": nodes, "failed": str(error)[:REASON]}
    return {"nodes": nodes, "error": difference(got, expected, sample)[0]}


def difference(
    got: Sequence[Array], expected: Sequence[Array], sample: Sample
) -> tuple[float, list[int]]:
    """The largest difference in terms of the scale of its output, and how much was compared.

    Detections are compared row by row; see ``align_rows``.
    """
    if len(got) != len(expected):
        return float("inf"), []
    if sample.detects:
        got = align_rows(got, expected)
    measure = spread if sample.rough else scale_error
    worst = max(measure(y, w) for y, w in zip(got, expected, strict=True))
    return worst, [int(np.sum(w != -1)) if sample.detects else w.size for w in expected]


def align_rows(got: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
    """The detections, each in the place of the one it stands for: of those whose scores are the
    same but for rounding, the one of that class with the nearest box.

    The outputs are classes, scores, boxes and what else there is of each, by sample. Where several
    have the score of the last, there are more of them that were cut off, and which are left is
    chance: there only classes and scores are compared.
    """
    if any(y.shape != w.shape for y, w in zip(got, expected, strict=True)):
        return list(got)
    order = np.array([_partners(*rows) for rows in zip(*got[:3], *expected[:3], strict=True)])
    placed = [y[np.arange(len(y))[:, None], order] for y in got]
    last = np.abs(expected[1] - expected[1].min(1, keepdims=True)) <= ROUNDING
    last &= (expected[1] > 0) & (last.sum(1, keepdims=True) > 1)
    last = last.reshape(last.shape[:2])
    for y, reference in zip(placed[2:], expected[2:], strict=True):
        y[last] = reference[last]
    return placed


def _partners(
    classes: Array, scores: Array, boxes: Array, theirs: Array, expected: Array, places: Array
) -> list[int]:
    free, indices = list(range(len(scores))), []
    for of, score, box in zip(theirs, expected, places, strict=True):
        alike = [i for i in free if abs(scores[i] - score).max() <= ROUNDING and classes[i] == of]
        best = min(alike or free, key=lambda i: np.abs(boxes[i] - box).sum())
        free.remove(best)
        indices.append(best)
    return indices


def spread(y: Array, expected: Array) -> float:
    """The root of the mean square of the difference in terms of that of the output."""
    if y.shape != expected.shape or y.dtype != expected.dtype:
        return float("inf")
    y, expected = y.astype("float64"), expected.astype("float64")
    return float(np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)))


def scale_error(y: Array, expected: Array) -> float:
    """The largest difference in terms of the largest number; infinite for another shape."""
    if y.shape != expected.shape or y.dtype != expected.dtype:
        return float("inf")
    if not expected.size:
        return 0.0
    y, expected = y.astype("float64"), expected.astype("float64")
    if not np.isfinite(expected).all():
        return float("nan")
    return float(np.abs(y - expected).max() / (np.abs(expected).max() or 1.0))


EXAMINE = {"onnx": examine, "litert": examine_in_litert}


def main(library: str, name: str, folder: str, target: str) -> None:
    """Examine one network and print what was found so far as JSON, a line each time."""
    from importlib import import_module

    import_mxnet()
    place = Path(folder)
    sample = import_module(f"conformance.zoo.{library}").sample(name, place)
    for row in EXAMINE[target](sample, place):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
