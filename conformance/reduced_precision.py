"""Whole models in fewer bits in the consumers of ONNX files."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import serde
from serde.bridges import onnxruntime
from serde.errors import SerdeError
from serde.ir.graph import Graph
from serde.plugins.targets import get_consumer
from testing.consumers.runtimes import HERE, TITLES, VERSIONS, is_here, run
from testing.live_worker import LiveError
from testing.onnx_live import LEVELS, run_at

from .consumer_models import FAILED, ConsumerModels, Result, read_outcome
from .matrix import last_line, reason
from .model_sources import Model, names, open_model, weight_of
from .record import RANK, REFUSED, RIGHT, WRONG

HEAVY = 2  # the rank of networks that are left out for their time
OTHERS = (  # of libraries, where they are here
    "gluonnlp/bert_12_768_12 with its heads", "gluonnlp/standard_lstm_lm_200",
    "gluonnlp/transformer_en_de_512 encoder", "gluoncv/simple_pose_resnet18_v1b",
    "gluoncv/mobilenetv3_small", "gluoncv/fastscnn_citys",
    "gluoncv/monodepth2_resnet18_posenet_kitti_mono_640x192",
)  # fmt: skip
# What is asked for, and how far outputs may be off in terms of their largest number: what
# ``serde convert --verify`` passes.
KINDS: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "--fp16": ({"fp16": True}, 2e-2),
    "--fp16 --fp16-io": ({"fp16": True, "fp16_io": True}, 2e-2),
    "--weights fp16": ({"weights": "fp16"}, 2e-2),
    "--weights bf16": ({"weights": "bf16"}, 5e-2),
    "--weights int8": ({"weights": "int8"}, 1e-1),
}
BACK = "float16, --fp32"  # a file of float16 that is made float32 again


class ReducedPrecision(ConsumerModels):
    """What became of a model in each consumer, by kind of number."""

    def cases(self) -> list[str]:
        chosen = [n for n in names() if "/" not in n and weight_of(n) <= HEAVY]
        return chosen + [n for n in names() if n in OTHERS]

    def run(self, case: str) -> dict[str, Result]:
        row: dict[str, Result] = {}
        with tempfile.TemporaryDirectory() as place:
            model = open_model(case, Path(place))
            for consumer in (c for c in TITLES if is_here(c)):
                for kind, (options, bound) in KINDS.items():
                    read = read_as(model, options)
                    row[f"{consumer} {kind}"] = examine(model, read, consumer, bound, Path(place))
                read = read_back(model, Path(place))
                row[f"{consumer} {BACK}"] = examine(model, read, consumer, 2e-2, Path(place))
        return row

    def make_record(self, before: Mapping[str, Any], rows: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**before, **rows}  # the libraries need not be here


def read_as(model: Model, options: Mapping[str, Any]) -> Callable[..., Graph]:
    """A function that reads a model with these options."""
    return lambda **reading: model.reads[""](**reading, **options)


def read_back(model: Model, folder: Path) -> Callable[..., Graph]:
    """A function that reads a model in float32 from a file in float16."""

    def read(integers: str = "", **reading: Any) -> Graph:
        path = folder / "half.onnx"
        serde.save(model.reads[""](fp16=True, fp16_io=True), path, external_data="never")
        return serde.load(path, fp32=True, **reading)

    return read


def examine(
    model: Model, read: Callable[..., Graph], consumer: str, bound: float, folder: Path
) -> Result:
    """Write a model for a consumer and run it."""
    path, (feeds, expected) = folder / f"{consumer}.onnx", model.runs[""]
    try:
        graph = read(**get_consumer(consumer).reading)
        serde.save(graph, path, external_data="never", profile=consumer)
        feeds = {v.name: feeds[v.name].astype(v.type.numpy) for v in graph.inputs}
        results = run_all(consumer, path, feeds)
    except SerdeError as problem:
        return [REFUSED, reason(problem)]
    except LiveError as problem:
        return [FAILED, last_line(problem)]
    worst = max(model.difference([*map(as_single, got)], expected) for got in results)
    return [RIGHT if worst < bound else WRONG, worst]


def run_all(consumer: str, path: Path, feeds: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """What a consumer computes; ONNX Runtime with its optimizers, without, and with roundings.

    Without float16, the last computes the same again.
    """
    if consumer != HERE:
        return iter([run(consumer, str(path), feeds)])
    runs = [run_at(level, path, feeds) for level in LEVELS]
    return iter([*runs, onnxruntime.run(path, feeds, rounded=True)])


def as_single(array: Any) -> Any:
    """An output of float16 in float32."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


HEADER = """# Fewer bits in the consumers of ONNX

Made by `python -m conformance.pages`. MXNet's networks and some of its model libraries, with random
weights, are converted with an option for fewer bits and a consumer's profile, and run: {runtimes}.
The numbers are the largest difference from what MXNet computes in float32, in terms of the largest
number of the output; right is below 0.02 for float16, 0.05 for bfloat16 and 0.1 for int8. *{back}*
is a file in float16 that is converted with `--fp32`.
[reduced-precision.md](../how-to/reduced-precision.md) describes the options.
"""


def page(known: Mapping[str, Mapping[str, Result]]) -> Iterator[str]:
    """The lines of docs/results/reduced-precision.md."""
    runtimes = ", ".join(f"{title} {VERSIONS[name]}" for name, title in TITLES.items())
    yield HEADER.format(runtimes=runtimes, back=BACK)
    kinds = [*KINDS, BACK]
    yield "## By consumer\n"
    yield f"| consumer | options | {' | '.join(RANK)} | largest difference of a right one |"
    yield "|---|---|" + "---:|" * (len(RANK) + 1)
    for consumer, title in TITLES.items():
        for kind in kinds:
            found = [row[key] for row in known.values() if (key := f"{consumer} {kind}") in row]
            yield f"| {title} | `{kind}` | {' | '.join(summarize(found))} |"
    yield "\n## By model\n\nThe largest difference in a consumer that takes it.\n"
    yield f"| model | {' | '.join(f'`{k}`' for k in kinds)} |\n|---|" + "---:|" * len(kinds)
    for name, row in known.items():
        worst = (find_worst([row[k] for k in row if k.partition(" ")[2] == kind]) for kind in kinds)
        yield f"| {name} | {' | '.join(worst)} |"
    yield ""


def summarize(found: Sequence[Result]) -> list[str]:
    """How many results there are of each kind, and the largest difference of those right."""
    counts = Counter(read_outcome(result).kind for result in found)
    return [*(str(counts[kind]) for kind in RANK), find_worst(found)]


def find_worst(found: Sequence[Result]) -> str:
    """The largest difference, or what failed."""
    failed = [str(detail) for kind, detail in found if kind == FAILED]
    off = [detail for kind, detail in found if kind in (RIGHT, WRONG)]
    return f"**failed**: {failed[0][:100]}" if failed else f"{max(off):.0e}" if off else ""
