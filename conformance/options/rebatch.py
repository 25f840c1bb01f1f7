"""``--rebatch``: each sample of a batch gives what the source computes of it alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import serde
from serde.errors import SerdeError

from ..matrix import NotRun, reason
from .cells import Needless, differ, run, run_optimized, write
from .models import Arrays, Model

SAMPLES = 3
ROUNDINGS = 1e-5  # of scale: what a batch may change that mixes nothing


def rebatch(size: int | str, of: int, model: Model, folder: Path) -> str | None:
    """A model of ``of`` samples for a batch of another size, by number or name."""
    if of > 1 and model.build is None:
        raise NotRun("it cannot be built for several samples")
    source = model if of == 1 or model.build is None else model.build(of)
    path, target = write(source, folder), folder / "rebatched.onnx"
    feeds = draw_batch(model)
    try:
        expected = run(path, feeds) if has_batch(source, size) else run_alone(source, feeds)
    except Exception as error:
        raise NotRun(f"the source takes no single sample: {error}") from None
    try:
        report = serde.convert(path, target, rebatch=request(source, size), verify=True)
    except SerdeError as error:
        if is_possible(model, feeds):
            raise Needless(reason(error)) from None
        raise
    failure = differ(run(target, feeds), expected) or differ(run_optimized(target, feeds), expected)
    verification = report.verification
    if failure is None and not verification.done:
        return f"verification: {verification.statement}"
    if failure is None and not verification.ok:
        return "verification fails on a right model"
    return failure


def has_batch(model: Model, size: int | str) -> bool:
    """Whether the model is made for that batch already: it stays as it is."""
    axes = [(array, model.axes.get(name)) for name, array in model.feeds.items()]
    return all(axis is None or array.shape[axis] == size for array, axis in axes)


def request(model: Model, size: int | str) -> Any:
    """What to ask for: the axes by name where the batch is not the first of all inputs."""
    axes = {name: model.axes.get(name) for name in model.feeds}
    if set(axes.values()) == {0}:
        return size
    return {name: None if axis is None else (axis, size) for name, axis in axes.items()}


def draw_batch(model: Model) -> Arrays:
    """Inputs of several samples."""
    if model.build is not None:
        return model.build(SAMPLES).feeds
    draws = np.random.default_rng(1)
    feeds = {}
    for name, array in model.feeds.items():
        axis = model.axes.get(name)
        if axis is None:
            feeds[name] = array
            continue
        rows = draws.integers(0, array.shape[axis], SAMPLES) if array.shape[axis] else []
        batch = np.take(array, rows, axis)
        if array.dtype.kind == "f":
            batch = batch * draws.uniform(0.5, 1, batch.shape).astype(array.dtype)
        feeds[name] = batch
    return feeds


def run_alone(source: Model, feeds: Arrays) -> list[Any]:
    """What the source computes of each sample, put together; its batch repeats the sample."""
    single: list[Sequence[Any]] = []
    for sample in range(SAMPLES):
        one = {}
        for name, array in feeds.items():
            axis, at = source.axes.get(name), source.feeds[name]
            count = None if axis is None else at.shape[axis]
            one[name] = array if count is None else np.take(array, [sample] * count, axis)
        single.append(run(source.proto, one))
    axes = find_output_axes(source)
    return [join_samples([outputs[i] for outputs in single], axes[i]) for i in range(len(axes))]


def find_output_axes(source: Model) -> list[int | None]:
    """The axis of samples of each output, None where there is none."""
    if source.build is None:
        return [source.axes.get(name, 0) for name in source.outputs]
    one, two = (run(m.proto, m.feeds) for m in (source.build(1), source.build(2)))
    changed = (
        [axis for axis, (n, m) in enumerate(zip(np.shape(a), np.shape(b), strict=True)) if n != m]
        for a, b in zip(one, two, strict=True)
    )
    return [axes[0] if axes else None for axes in changed]


def join_samples(outputs: Sequence[Any], axis: int | None) -> Any:
    """The outputs of single samples as one; those without an axis of samples are all the same."""
    if axis is None or not np.ndim(outputs[0]):
        if any(differ([other], [outputs[0]]) for other in outputs):
            raise NotRun("an output without an axis of samples depends on them")
        return outputs[0]
    return np.concatenate([np.take(y, [0], axis) for y in outputs], axis)


def is_possible(model: Model, feeds: Arrays) -> bool:
    """Whether the model, built for several samples, computes each sample alone."""
    if model.build is None:
        return False
    together, alone = run(model.build(SAMPLES).proto, feeds), run_alone(model, feeds)
    return differ(together, alone, ROUNDINGS) is None


PROPERTIES: dict[str, Callable[[Model, Path], str | None]] = {
    "N": partial(rebatch, "N", 1),
    "3": partial(rebatch, SAMPLES, 1),
    "2 to N": partial(rebatch, "N", 2),
}
