"""The length of PyTorch sources, and the time they take: ``python -m benchmarks.torch_source``.

Networks of MXNet are converted, each in a process of its own after a small model, so that caches
are cold. Layers are the operators of the symbol, lines the statements of all ``forward`` methods
together, and processor time is beside that of the same conversion to ONNX. ``chain`` among the
names, or none, converts 10,000 layers as well, no two of them alike.
"""

from __future__ import annotations

import ast
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testing import networks

from .against import COLD, LAYERS, SHAPE
from .against import SMALL as FEW
from .measure import publish, python, table

NETWORKS = ("resnet50_v2", "densenet121", "mobilenetv2_0.25", "inceptionv3",
            "vgg11_bn")  # fmt: skip
SMALL = "resnet18_v1"  # it takes images of all sizes
REPEATS = 3
CHAIN = "chain"
TEXT = """Written by `python -m benchmarks.torch_source`, each in a fresh process; weights are
copied too."""
CHAIN_TEXT = f"""{LAYERS:,} layers of which no two are alike, written by
`python -m benchmarks.torch_source chain`: the least processor time of the first conversion of
{REPEATS} processes, reading and writing included."""


def count_layers(symbol: Path) -> int:
    """The operators of a symbol."""
    nodes = json.loads(symbol.read_text())["nodes"]
    return sum(node["op"] != "null" for node in nodes)


def count_statements(source: Path) -> int:
    """The statements of all ``forward`` methods."""
    tree = ast.parse(source.read_text())
    methods = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "forward"]
    return sum(len(method.body) for method in methods)


def time_cold(small: Path, source: Path, target: Path, options: Mapping[str, Any]) -> float:
    """The least processor time of a conversion in a fresh process."""
    command = (COLD, small, source, target, json.dumps(options))
    return min(json.loads(python(*command).printed)[0] for _ in range(REPEATS))


def measure_chain() -> None:
    """Publish the time of each layer of a chain, of both sources and to both targets."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / str(count) for count in (FEW, LAYERS)]
        for folder in folders:
            folder.mkdir()
            python("-m", "benchmarks.models", "chain", folder, folder.name, "different")
            symbol = folder / "model-symbol.json"
            python(COLD, symbol, symbol, folder / "model.onnx", json.dumps(SHAPE))
        for name, options in (("model-symbol.json", SHAPE), ("model.onnx", {})):
            files = [folder / name for folder in folders]
            targets = [Path(place) / target for target in ("net.py", "other.onnx")]
            seconds, yardstick = (time_cold(*files, target, options) for target in targets)
            rows.append([f"`{name}`", f"{1e6 * seconds / LAYERS:.0f}",
                         f"{1e6 * yardstick / LAYERS:.0f}"])  # fmt: skip
    head = ("source", "PyTorch, µs a layer", "ONNX, µs a layer")
    publish("A long PyTorch source", f"{CHAIN_TEXT}\n\n{table(head, rows)}")


def measure_networks(chosen: Sequence[str]) -> None:
    """Publish the length of networks, and the time of each of their layers."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        symbols = {}
        for name in (SMALL, *chosen):
            network = networks.build(name, networks.smallest(name))
            symbols[name], _ = networks.export(network, folder)
        for name in chosen:
            source = folder / f"{name.replace('.', '_')}.py"
            files, size = (symbols[SMALL], symbols[name]), networks.smallest(name)
            options = {"inputs": {"data": ["N", 3, size, size]}}
            targets = source, folder / "n.onnx"
            seconds, yardstick = (time_cold(*files, target, options) for target in targets)
            layers, lines = count_layers(symbols[name]), count_statements(source)
            micros = 1e6 * seconds / layers
            rows.append([name, str(layers), str(lines), f"{lines / layers:.2f}", f"{micros:.0f}",
                         f"{seconds / yardstick:.2f}"])  # fmt: skip
    head = ("network", "layers", "lines", "lines a layer", "µs a layer", "× ONNX")
    publish("Sources of PyTorch modules", f"{TEXT}\n\n{table(head, rows)}")


def main() -> None:
    """Measure all, or what is named."""
    chosen = sys.argv[1:] or [*NETWORKS, CHAIN]
    if CHAIN in chosen:
        measure_chain()
    if named := [name for name in chosen if name != CHAIN]:
        measure_networks(named)


if __name__ == "__main__":
    main()
