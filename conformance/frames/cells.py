"""What becomes of MXNet's networks as files hold them: docs/results/frames.md.

Each network is saved in each way, and converted without the shapes of its inputs, with them, and
with a name for the number of samples. ONNX Runtime gets other inputs than those in the file.
"""

from __future__ import annotations

import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

import serde
from serde.errors import SerdeError
from serde.verification import Verification
from testing.mxnet_live import live_mxnet, run_symbol

from ..matrix import Cell, last_line, reason
from ..record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome
from .files import WAYS, Saved
from .networks import NETWORKS, Network
from .random_networks import COUNT, draft_network

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
TOLERANCE = 1e-4
SAMPLES = 5  # that a model with an open batch is run on
RANDOM = "random "
SHOWN = 160  # letters of a reason
HEADER = """# Frames of MXNet's networks

Made by `python -m conformance.pages` from `python -m conformance mxnet-frames`: networks whose
inputs, labels and parameters are hard to tell apart, in each of the ways in which files hold them,
{count} in all. Each is converted without shapes of inputs (*bare*), with them (*sizes*) and with a
name for the number of samples (*names*), and run in ONNX Runtime on other inputs than those in the
file; the truth is what MXNet 1.9.1 computes. *Right* is what has these inputs and outputs, computes
the same, and is passed by `--verify`, or is said to be of sizes that nothing tells.

| way | bare: right | refused | wrong | sizes: right | refused | wrong | names: right | refused \
| wrong |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


class Model(NamedTuple):
    """A network with arrays, other inputs than it was saved with, and what MXNet computes."""

    net: Network
    outputs: list[str]
    saved: Saved
    batches: Mapping[int, tuple[Arrays, list[Array]]]  # by number of samples


INPUTS: Mapping[str, Callable[[Network], Mapping[str, Any] | None]] = {
    "bare": lambda net: None,
    "sizes": lambda net: dict(net.data),
    "names": lambda net: {n: net.resize(n, "N") for n in net.data},
}


class Frames(Cell):
    """The outcomes of each network in each way of saving."""

    def cases(self) -> list[str]:
        ways = [*WAYS]
        drafts = [
            (f"{RANDOM}{n}", ways[(n + at) % len(ways)]) for n in range(COUNT) for at in (0, 5)
        ]
        return [f"{name}: {way}" for name, way in (*product(NETWORKS, WAYS), *drafts)]

    def run(self, case: str) -> dict[str, str]:
        name, _, way = case.partition(": ")
        try:
            model = build(name)
        except Exception as error:  # what MXNet itself does not run
            return {"": str(Outcome.of(NOT_RUN, last_line(error)))}
        rows = {}
        for variant, choose in INPUTS.items():
            with tempfile.TemporaryDirectory() as folder:
                WAYS[way](model.saved, Path(folder))
                rows[variant] = str(examine(model, Path(folder), choose(model.net)))
        return rows

    def outcomes(self, case: str, row: Mapping[str, str]) -> dict[str, Outcome]:
        return {variant: Outcome.parse(text) for variant, text in row.items()}

    def make_failed_row(self, why: str) -> dict[str, str]:
        return {"": str(Outcome.of(WRONG, why))}


def build(name: str) -> Model:
    """A network with random arrays."""
    mx = live_mxnet()
    net = draft_network(int(name.removeprefix(RANDOM))) if RANDOM in name else NETWORKS[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    with mx.name.NameManager():
        symbol = net.make(mx.sym)
    fed = {**net.data, **net.labels}
    shapes, _, states = symbol.infer_shape_partial(**fed, **net.plain)
    arguments = dict(zip(symbol.list_arguments(), shapes, strict=True))
    auxiliary = dict(zip(symbol.list_auxiliary_states(), states, strict=True))
    parameters = {n: draw(rng, net, n, s) for n, s in arguments.items() if n not in fed}
    aux = {n: np.abs(draw(rng, net, n, s)) + 0.5 for n, s in auxiliary.items()}
    order = tuple(symbol.list_inputs())
    last = {n: draw(rng, net, n, s) for n, s in fed.items()}
    batches = {}
    first = next(iter(net.data))
    for count in dict.fromkeys((net.data[first][net.batch.get(first) or 0], SAMPLES)):
        feeds = {n: draw(rng, net, n, net.resize(n, count)) for n in fed}
        try:
            expected = run_symbol(symbol.tojson(), {**parameters, **aux}, feeds)
        except mx.base.MXNetError:  # a size is written into the symbol
            continue
        batches[count] = feeds, expected
    saved = Saved(symbol.tojson(), parameters, aux, last, order)
    return Model(net, symbol.list_outputs(), saved, batches)


def draw(rng: Any, net: Network, name: str, shape: tuple[int, ...]) -> Array:
    """An array for a variable."""
    if name in net.integers or "label" in name:
        return rng.integers(0, net.integers.get(name, 2), shape).astype("f")  # type: ignore
    return rng.normal(0, 1, shape).astype("f")  # type: ignore[no-any-return]


def examine(model: Model, folder: Path, inputs: Mapping[str, Any] | None) -> Outcome:
    """Convert a folder and compare with MXNet."""
    target = folder / "m.onnx"
    try:
        report = serde.convert(folder / "m-symbol.json", target, inputs=inputs, verify=True)
        session = onnxruntime.InferenceSession(str(target))
    except SerdeError as error:
        return Outcome.of(REFUSED, reason(error).replace(str(folder), ""))
    except Exception as error:  # a model that does not load, say
        return Outcome.of(WRONG, f"{type(error).__name__}: {last_line(error)}")
    failure = compare_ends(model, session) or compare_runs(model, session)
    failure = failure or compare_verdict(report.verification)
    return Outcome.of(WRONG, failure) if failure else Outcome(RIGHT)


def compare_ends(model: Model, session: Any) -> str | None:
    """How the inputs and outputs differ from MXNet's; None where they do not."""
    inputs = {i.name for i in session.get_inputs()}
    if inputs != model.net.data.keys():
        return f"inputs {sorted(inputs)}, not {sorted(model.net.data)}"
    expected = len(model.outputs) - len(model.net.lost)
    outputs = [o.name for o in session.get_outputs()]
    return None if len(outputs) == expected else f"outputs {outputs} of {model.outputs}"


def compare_runs(model: Model, session: Any) -> str | None:
    """How outputs differ from MXNet's for every number of samples that a model takes."""
    shapes = {i.name: i.shape for i in session.get_inputs()}
    kept = [at for at in range(len(model.outputs)) if at not in model.net.lost]
    runs = 0
    for count, (feeds, expected) in model.batches.items():
        given = {n: feeds[n] for n in shapes}
        if not all(is_taken(shapes[n], x.shape) for n, x in given.items()):
            continue
        runs += 1
        try:
            got = session.run(None, cast_feeds(session, given))
        except Exception as error:
            return f"{count} samples: {last_line(error)}"
        for at, y in zip(kept, got, strict=True):
            if (how := differ(y, expected[at])) is not None:
                return f"{count} samples: output {at}: {how}"
    return None if runs else f"takes none of the inputs: {shapes}"


def cast_feeds(session: Any, feeds: Arrays) -> Arrays:
    """Arrays in the types that a model takes."""
    types = {i.name: i.type.removeprefix("tensor(").removesuffix(")") for i in session.get_inputs()}
    return {n: x.astype({"float": "f", "double": "d"}.get(types[n], types[n]))
            for n, x in feeds.items()}  # fmt: skip


def is_taken(declared: list[Any], shape: tuple[int, ...]) -> bool:
    """Whether an array has the sizes that a model fixes; another rank is tried."""
    pairs = zip(declared, shape, strict=False)
    return all(not isinstance(d, int) or d == e for d, e in pairs)


def differ(got: Array, expected: Array) -> str | None:
    """How an output differs; a scalar may have an axis or none."""
    if got.shape != expected.shape and {got.shape, expected.shape} != {(), (1,)}:
        return f"shape {got.shape}, not {expected.shape}"
    off = np.abs(got.reshape(expected.shape) - expected).max(initial=0)
    scale = float(np.abs(expected).max(initial=0)) or 1.0
    return None if off <= TOLERANCE * scale else f"off by {off / scale:.0e} of scale"


def compare_verdict(verification: Verification) -> str | None:
    """How the verification of a right model fails."""
    if not verification.done:
        is_told = "--input" in verification.statement
        return None if is_told else f"verification: {verification.statement}"
    return None if verification.ok else "verification fails on a right model"


def page(rows: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The lines of docs/results/frames.md."""
    yield HEADER.format(count=f"{len(rows):,}")
    for way in WAYS:
        cells = []
        for variant in INPUTS:
            row = (r[variant] for n, r in rows.items() if n.endswith(f": {way}") and variant in r)
            counts = Counter(Outcome.parse(text).kind for text in row)
            cells += [counts[RIGHT], counts[REFUSED], counts[WRONG]]
        yield f"| {way} | " + " | ".join(map(str, cells)) + " |"
    yield "\n## What is wrong\n"
    wrong = [
        f"* {name} [{variant}]: {text[:SHOWN]}"
        for name, row in rows.items() for variant, text in row.items() if text.startswith(WRONG)
    ]  # fmt: skip
    yield from wrong or ["Nothing."]
    yield ""
