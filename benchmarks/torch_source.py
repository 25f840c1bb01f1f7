"""The length of PyTorch sources, and the time they take: ``python -m benchmarks.torch_source``.

Networks of MXNet are converted, each in a process of its own after a small model, so that caches
are cold. Layers are the operators of the symbol, lines the statements of all ``forward`` methods
together, and processor time is beside that of the same conversion to ONNX.
"""

from __future__ import annotations

import ast
import json
import sys
import tempfile
from pathlib import Path

from testing import networks

from .measure import ROOT, publish, python, table

NETWORKS = ("resnet50_v2", "densenet121", "mobilenetv2_0.25", "inceptionv3",
            "vgg11_bn")  # fmt: skip
SMALL = "resnet18_v1"  # it takes images of all sizes
REPEATS = 3
TEXT = """Written by `python -m benchmarks.torch_source`, each in a fresh process; weights are
copied too."""


def count_layers(symbol: Path) -> int:
    """The operators of a symbol."""
    nodes = json.loads(symbol.read_text())["nodes"]
    return sum(node["op"] != "null" for node in nodes)


def count_statements(source: Path) -> int:
    """The statements of all ``forward`` methods."""
    tree = ast.parse(source.read_text())
    methods = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "forward"]
    return sum(len(method.body) for method in methods)


def time_cold(small: Path, symbol: Path, target: Path, size: int) -> float:
    """The least processor time of a conversion in a fresh process."""
    options = json.dumps({"inputs": {"data": ["N", 3, size, size]}})
    command = (ROOT / "benchmarks" / "cold.py", small, symbol, target, options)
    return min(json.loads(python(*command).printed)[0] for _ in range(REPEATS))


def main() -> None:
    """Measure all, or the networks that are named."""
    chosen = sys.argv[1:] or NETWORKS
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
            seconds, yardstick = (time_cold(*files, p, size) for p in (source, folder / "n.onnx"))
            layers, lines = count_layers(symbols[name]), count_statements(source)
            micros = 1e6 * seconds / layers
            rows.append([name, str(layers), str(lines), f"{lines / layers:.2f}", f"{micros:.0f}",
                         f"{seconds / yardstick:.2f}"])  # fmt: skip
    head = ("network", "layers", "lines", "lines a layer", "µs a layer", "× ONNX")
    publish("Sources of PyTorch modules", f"{TEXT}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
