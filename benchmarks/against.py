"""This checkout beside another commit: ``python -m benchmarks.against CHECKOUT [PART …]``.

CHECKOUT is a folder with the other commit, as ``git worktree add`` makes it. Parts: ``chain``
(10,000 layers, no two alike, five ways; 17 → 21 also by onnx's converter), ``length`` (100,000 of
them), ``batch`` (a batch by name, of inputs and by rebatch), ``networks`` (DenseNet-121),
``digits`` (a short conversion as a process), ``copy`` (VGG-19 beside ``cp``). Both commits are
installed as copies and compiled. Every run is a process of its own, runs of all ways take turns,
and the least counts: caches are cold, and other work on the machine adds the same to each.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import (
    ROOT,
    Cost,
    interleave,
    into_cache,
    publish,
    python,
    remove,
    table,
    workplace,
)

COLD = ROOT / "benchmarks" / "cold.py"
FOLDERS = ("backends", "bridges", "formats", "frontends")  # packages in serde, as installed
COMMAND = "from serde.cli.commands import main; main()"
SHAPE = {"inputs": {"data": [1, 16, 8, 6]}}
WAYS = {  # of the chain: source, target and options
    "opset 17 → opset 21": ("model.onnx", "other.onnx", {"opset": 21}),
    "opset 17 → opset 11": ("model.onnx", "other.onnx", {"opset": 11}),
    "MXNet → opset 17": ("model-symbol.json", "other.onnx", {"opset": 17, **SHAPE}),
    "opset 17 → MXNet": ("model.onnx", "other-symbol.json", {}),
    "opset 17 → Relay": ("model.onnx", "other.relay", {}),
}
SMALL, LAYERS, MANY = 10, 10_000, 100_000
HEAD = ("conversion", "other, s", "this, s", "ratio", "other, MB", "this, MB")


def install(checkout: Path, place: Path) -> Path:
    """Copy a checkout's packages and entry points as they are installed, and compile them."""
    shutil.copytree(checkout / "serde", place / "serde")
    for name in FOLDERS:  # in newer commits, links in serde lead to them
        shutil.copytree(checkout / name, place / "serde" / name, dirs_exist_ok=True)
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(place)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    compileall.compile_dir(place, quiet=2)
    return place


class Bench:
    """Both commits, and models to convert."""

    def __init__(self, folder: Path, other: Path, repeats: int) -> None:
        self.folder, self.repeats = folder, repeats
        os.environ.pop("PYTHONPYCACHEPREFIX", None)  # they are compiled in place
        self.command = folder / "command.py"  # with -c the folder it runs in would come first
        self.command.write_text(COMMAND)
        self.places = {
            "other": install(other, folder / "other"), "this": install(ROOT, folder / "this")
        }  # fmt: skip

    def way(self, place: Path | None, *command: Any) -> Callable[[], Cost]:
        """A run of Python with one of the commits."""

        def run() -> Cost:
            os.environ["PYTHONPATH"] = str(place or "")
            try:
                return python(*command)
            finally:
                del os.environ["PYTHONPATH"]

        return run

    def cold(self, place: Path | None, small: Path, model: Path, into: Path, options: Any) -> Any:
        """A conversion in a process of its own."""
        return self.way(place, COLD, small, model, into, json.dumps(options))

    def best(self, ways: Mapping[Any, Callable[[], Cost]]) -> dict[Any, list[float]]:
        """The least seconds of each way, and the most memory."""
        printed: dict[Any, list[list[float]]] = {name: [] for name in ways}
        for _ in range(self.repeats):
            for name, way in ways.items():
                printed[name].append(json.loads(way().printed))
        return {n: [min(s for s, _ in r), max(m for _, m in r)] for n, r in printed.items()}

    def chain_of(self, layers: int) -> Path:
        """A chain of layers of different sizes, in MXNet's files and in ONNX."""
        place = self.folder / f"chain{layers}"
        if not place.exists():
            place.mkdir()
            python("-m", "benchmarks.models", "chain", place, str(layers), "different")
            files = place / "model-symbol.json", place / "model.onnx"
            self.cold(self.places["this"], *files[:1], *files, {"opset": 17, **SHAPE})()
        return place

    def network(self, name: str) -> Path:
        """The symbol of one of Gluon's networks, with its weights beside it."""
        place = self.folder / name
        if not place.exists():
            place.mkdir()
            python("-m", "benchmarks.models", "gluon", place, name)
        return place / "model-symbol.json"

    def compare(self, name: str, sources: tuple[Path, Path], into: str, options: Any) -> list[str]:
        """A row of a table: the same conversion by both."""
        ways = {n: self.cold(p, *sources, self.folder / into, options)
                for n, p in self.places.items()}  # fmt: skip
        costs = self.best(ways)
        (other, before), (this, now) = costs["other"], costs["this"]
        ratio = f"{this / other:.2f}"
        return [name, f"{other:.2f}", f"{this:.2f}", ratio, f"{before:.0f}", f"{now:.0f}"]


def chain(bench: Bench) -> str:
    """Ratios of the five ways, and to onnx's converter."""
    small, large = bench.chain_of(SMALL), bench.chain_of(LAYERS)
    rows = [bench.compare(name, (small / source, large / source), into, options)
            for name, (source, into, options) in WAYS.items()]  # fmt: skip
    files = small / "model.onnx", large / "model.onnx", bench.folder / "other.onnx"
    ways = {
        "this": bench.cold(bench.places["this"], *files, {"opset": 21}),
        "onnx": bench.cold(None, *files, {"onnx": 21}),
    }
    costs = bench.best(ways)
    ratio = costs["this"][0] / costs["onnx"][0]
    return f"{table(HEAD, rows)}\nonnx's version converter, 17 → 21: {costs['onnx'][0]:.2f} s; " \
        f"serde takes {ratio:.2f} times as long."  # fmt: skip


def length(bench: Bench) -> str:
    """Microseconds a layer of chains of two lengths."""
    rows = []
    for name, (source, into, options) in WAYS.items():
        each = {}
        for layers in (LAYERS, MANY):
            files = bench.chain_of(SMALL) / source, bench.chain_of(layers) / source
            way = bench.cold(bench.places["this"], *files, bench.folder / into, options)
            each[layers] = bench.best({"this": way})["this"][0] / layers * 1e6
        few, many = each.values()
        rows.append((name, f"{few:.0f}", f"{many:.0f}", f"{many / few:.2f}"))
    return table(("conversion", "µs a layer of 10,000", "of 100,000", "ratio"), rows)


def batch(bench: Bench) -> str:
    """What a batch by name adds: of the caller's inputs, and instead of a fixed one."""
    chains = {n: bench.chain_of(n) for n in (SMALL, LAYERS)}
    symbols, models = ([place / file for place in chains.values()]
                       for file in ("model-symbol.json", "model.onnx"))  # fmt: skip
    image = {"inputs": {"data": [1, 3, 224, 224]}}
    densenet = [bench.network(name) for name in ("squeezenet1.0", "densenet121")]
    cases = {
        "chain, MXNet → opset 17": (symbols, SHAPE, with_batch(SHAPE)),
        "DenseNet-121, MXNet → opset 17": (densenet, image, with_batch(image)),
        "chain, 17 → 21, rebatch": (models, {"opset": 21}, {"opset": 21, "rebatch": "N"}),
    }
    rows = []
    for name, (sources, *options) in cases.items():
        ways = {(commit, by_name): bench.cold(place, *sources, bench.folder / "o.onnx", more)
                for commit, place in bench.places.items()
                for by_name, more in enumerate(options)}  # fmt: skip
        costs = {way: cost for way, (cost, _) in bench.best(ways).items()}
        for commit in bench.places:
            number, named = costs[commit, 0], costs[commit, 1]
            rows.append((name, commit, f"{number:.2f}", f"{named:.2f}", f"{named / number:.2f}"))
    return table(("conversion", "commit", "batch of 1, s", "batch N, s", "ratio"), rows)


def with_batch(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that name the first size of each input ``N``."""
    return {"inputs": {name: ["N", *dims[1:]] for name, dims in options["inputs"].items()}}


def networks(bench: Bench) -> str:
    """DenseNet-121 from MXNet's files."""
    sources = bench.chain_of(SMALL) / "model-symbol.json", bench.network("densenet121")
    return table(HEAD, [bench.compare("DenseNet-121 → opset 17", sources, "o.onnx", {})])


def digits(bench: Bench) -> str:
    """The digits example as a process, beside an interpreter that imports onnx and NumPy."""
    into = bench.folder / "digits.onnx"
    command = (bench.command, "convert", ROOT / "examples" / "digits", "-o", into, "-q")
    ways = {n: bench.way(p, *command) for n, p in bench.places.items()}
    ways["imports"] = bench.way(None, "-c", "import onnx, numpy")
    least = interleave(ways, 2 * bench.repeats)
    base = least["imports"].processor
    rows = [(n, f"{1e3 * c.processor:.0f}", f"{c.processor / base:.2f}") for n, c in least.items()]
    return table(("process", "processor, ms", "× imports"), rows)


def copy(bench: Bench) -> str:
    """VGG-19 beside ``cp`` of its weights."""
    from benchmarks.convert import copying

    source, into = bench.network("vgg19"), bench.folder / "o.onnx"
    weights = source.with_name("model-0000.params")

    def converting(commit: Path) -> Callable[[], Cost]:
        options = ("-q", "--external-data", "never")
        way = bench.way(commit, bench.command, "convert", source, "-o", into, *options)

        def run() -> Cost:
            remove(into)
            return way()

        return run

    into_cache(weights)
    ways = {"`cp`": copying(weights, bench.folder / "copy")}
    costs = interleave(ways | {n: converting(p) for n, p in bench.places.items()}, bench.repeats)
    base = costs["`cp`"].seconds
    rows = [(n, f"{c.seconds:.2f}", f"{c.seconds / base:.2f}") for n, c in costs.items()]
    return table(("way", "time, s", "× cp"), rows)


PARTS = {f.__name__: f for f in (chain, length, batch, networks, digits, copy)}
TITLES = {
    "chain": "10,000 layers beside an earlier commit", "length": "10,000 and 100,000 layers",
    "batch": "A batch by name", "networks": "DenseNet-121 beside an earlier commit",
    "digits": "A short conversion as a process", "copy": "VGG-19 beside an earlier commit",
}  # fmt: skip
COLD_PARTS = frozenset({"batch", "chain", "length", "networks"})
HOW = (
    "Processor time of the first conversion of a process, of layers of which no two are alike, "
    "reading and writing included. "
)


def main() -> int:
    """Run the parts asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.against")
    parser.add_argument("checkout", type=Path, help="a folder with the other commit")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (5)")
    parser.add_argument("--commit", default="the other", help="what the page calls the other")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    with workplace(None) as folder:
        bench = Bench(folder, args.checkout.resolve(), args.repeats)
        for part in args.parts or PARTS:
            rows = PARTS[part](bench)
            how = HOW if part in COLD_PARTS else ""
            text = (
                f"{PARTS[part].__doc__} *other* is commit {args.commit}. {how}"
                f"The least of {args.repeats} runs of each, in turn."
            )
            publish(TITLES[part], f"{text}\n\n{rows}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
