"""Time and memory of converting: ``python -m benchmarks.convert [PART …]``.

Parts: ``weights`` (VGG-19, ResNet-152), ``large`` (a 4 GB MXNet model), ``onnx`` (a 6 GB ONNX model
to another opset), ``nodes`` (graphs of up to 100,000 nodes), ``imports``, and ``exporter`` (MXNet's
own exporter beside ours). Every run is a process of its own; tables go into benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import (
    Cost,
    Failed,
    interleave,
    into_cache,
    publish,
    python,
    remove,
    run,
    serde,
    table,
    workplace,
)

NETWORKS = {"vgg19": "VGG-19", "resnet152_v1": "ResNet-152"}
MODES = {"inline": "never", "external": "always", "reference": "reference"}
SIZES = (1_000, 10_000, 100_000)
RUNS = 11  # of each import
COLUMNS = ("way", "time, s", "× cp", "processor, s", "peak memory, MB")
HOW = "The best of {} runs of each, in turn; what is read is in the page cache."


def make(folder: Path, kind: str, *arguments: str) -> Path:
    """Have a model written into a folder of its own; return the folder."""
    folder.mkdir()
    python("-m", "benchmarks.models", kind, folder, *arguments)
    return folder


def copying(source: Path, target: Path) -> Callable[[], Cost]:
    """``cp`` to a new file."""

    def way() -> Cost:
        remove(target)
        return run("cp", source, target)

    return way


def converting(source: Path, target: Path, *options: str) -> Callable[[], Cost]:
    """``serde convert`` to new files."""

    def way() -> Cost:
        remove(target, target.with_name(f"{target.name}.data"))
        return serde("convert", source, "-o", target, "--quiet", *options)

    return way


def compare(weights: Path, source: Path, modes: list[str], repeats: int, *options: str) -> str:
    """Convert in several modes beside ``cp`` of the weights."""
    folder = source.parent
    target = folder / "converted.onnx"
    ways = {"`cp`": copying(weights, folder / "copy")} | {
        mode: converting(source, target, "--external-data", MODES[mode], *options) for mode in modes
    }
    into_cache(source, weights)
    costs = interleave(ways, repeats)
    remove(target, target.with_name(f"{target.name}.data"), folder / "copy")
    base = costs["`cp`"].seconds
    return table(
        COLUMNS,
        (
            (
                name,
                f"{c.seconds:.2f}",
                f"{c.seconds / base:.2f}",
                f"{c.processor:.2f}",
                f"{c.memory:.0f}",
            )
            for name, c in costs.items()
        ),
    )


def size(path: Path) -> str:
    """A file's size for people."""
    return f"{path.stat().st_size / 1e6:,.0f} MB"


def weights(folder: Path, repeats: int) -> None:
    """VGG-19 and ResNet-152."""
    serde("formats")  # compiles what is imported below
    for name, title in NETWORKS.items():
        try:
            place = make(folder / name, "gluon", name)
        except Failed as reason:
            print(f"{title}: {reason}")
            continue
        params = place / "model-0000.params"
        text = f"{size(params)} of weights from MXNet's files. {HOW.format(repeats)}"
        rows = compare(params, place / "model-symbol.json", list(MODES), repeats)
        publish(f"{title} to ONNX", f"{text}\n\n{rows}")
        remove(*place.iterdir())


def large(folder: Path, repeats: int) -> None:
    """A model that does not fit in one ONNX file."""
    place = make(folder / "large", "wide", "4")
    params = place / "model-0000.params"
    text = f"{size(params)} of weights in 16 dense layers. {HOW.format(repeats)}"
    rows = compare(params, place / "model-symbol.json", ["external", "reference"], repeats)
    publish("A 4 GB MXNet model to ONNX", f"{text}\n\n{rows}")
    remove(*place.iterdir())


def onnx(folder: Path, repeats: int) -> None:
    """A large ONNX model to a newer opset."""
    place = make(folder / "onnx", "external", "6")
    data = place / "model.onnx.data"
    text = f"{size(data)} of external data, opset 11 to 21. {HOW.format(repeats)}"
    modes = ["external", "reference"]
    rows = compare(data, place / "model.onnx", modes, repeats, "--opset", "21")
    publish("A 6 GB ONNX model to another opset", f"{text}\n\n{rows}")
    remove(*place.iterdir())


def nodes(folder: Path, repeats: int) -> None:
    """Microseconds a node, for graphs of growing size."""
    rows = []
    for shapes in ("repeated", "different"):
        places = {n: make(folder / f"{shapes}{n}", "chain", str(n), shapes) for n in SIZES}
        first = places[SIZES[0]]
        for way, name, into, opset, shape in (
            ("MXNet → opset 17", "model-symbol.json", "model.onnx", "17", ("1,16,8,6",)),
            ("opset 17 → opset 21", "model.onnx", "other.onnx", "21", ()),
            ("opset 17 → opset 11", "model.onnx", "other.onnx", "11", ()),
            ("opset 17 → MXNet", "model.onnx", "other-symbol.json", "0", ()),
            ("opset 17 → Relay", "model.onnx", "other.relay", "0", ()),
        ):
            for count, place in places.items():
                files = first / name, place / name, place / into
                command = ("-m", "benchmarks.stages", *files, opset)
                costs = [python(*command, *shape) for _ in range(repeats)]
                times = [json.loads(c.printed) for c in costs]
                each = {k: min(f[k] for f in times) / count * 1e6 for k in times[0]}
                memory = max(c.memory for c in costs)
                cells = [f"{each[k]:.0f}" for k in ("read", "fold", "write", "together")]
                rows.append((f"{way}, {shapes} shapes", f"{count:,}", *cells, f"{memory:.0f}"))
    head = ("conversion", "nodes", "read", "fold", "write", "together, µs a node", "peak, MB")
    text = (
        "A chain of Convolution, BatchNorm, Activation, elemwise_add and Reshape, every layer with "
        "six arrays of its own; with *different* shapes no two layers are alike. "
        "Processor time, the best of "
        f"{repeats} runs, each after a conversion of 1,000 nodes in its process."
    )
    publish("Graphs of many nodes", f"{text}\n\n{table(head, rows)}")


def imports(folder: Path, repeats: int) -> None:
    """What starting costs."""
    timing = "import time; {}; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    snippets = {
        "`import serde`, beyond NumPy": ("import numpy", "import serde"),
        "`serde.convert` looked up, after that": ("import numpy, serde", "serde.convert"),
        "`import onnx`, beyond NumPy": ("import numpy", "import onnx"),
        "`import numpy`": ("pass", "import numpy"),
    }
    rows = []
    for title, (before, measured) in snippets.items():
        code = timing.format(before, measured)
        python("-c", code)
        times = [float(python("-c", code).printed) for _ in range(RUNS)]
        rows.append((title, f"{statistics.median(times) * 1e3:.0f}"))
    for title, way in (
        ("`python -c pass`, the whole process", lambda: python("-c", "pass")),
        ("`serde --help`, the whole process", lambda: serde("--help")),
        ("`serde formats`, the whole process", lambda: serde("formats")),
    ):
        way()
        spent = statistics.median(way().seconds for _ in range(RUNS))
        rows.append((title, f"{spent * 1e3:.0f}"))
    text = f"The median of {RUNS} processes each."
    publish("Starting", f"{text}\n\n{table(('what', 'ms'), rows)}")


def exporter(folder: Path, repeats: int) -> None:
    """MXNet's own exporter and ours."""
    place = make(folder / "vgg11", "gluon", "vgg11")
    target, shape = place / "exported.onnx", "1,3,224,224"
    ways = {
        "MXNet's exporter": lambda: python(
            "-m", "conformance.mxnet_exporter", place / "model", target, shape
        ),
        "`serde convert`": converting(
            place / "model-symbol.json", place / "converted.onnx", "--input", f"data={shape}"
        ),
    }
    costs = interleave(ways, 1)
    rows = table(
        ("way", "time, s", "peak memory, MB"),
        ((n, f"{c.seconds:.1f}", f"{c.memory:,.0f}") for n, c in costs.items()),
    )
    text = (
        f"VGG-11, {size(place / 'model-0000.params')} of weights, both as whole processes. "
        "MXNet 1.9.1's `mxnet.onnx` runs with the names it needs put back into onnx "
        "(conformance/mxnet_exporter.py)."
    )
    publish("Beside MXNet's exporter", f"{text}\n\n{rows}")
    remove(*place.iterdir())


PARTS = {f.__name__: f for f in (weights, large, onnx, nodes, imports, exporter)}


def main() -> int:
    """Run the parts asked for, all but ``exporter`` where none is named."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.convert")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--folder", help="where models are written, some 20 GB (the system's own)")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    chosen = args.parts or [p for p in PARTS if p != "exporter"]
    with workplace(args.folder) as folder:
        for part in chosen:
            PARTS[part](folder, args.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
