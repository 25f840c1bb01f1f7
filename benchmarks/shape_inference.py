"""Time of inferring the shapes of inputs: ``python -m benchmarks.shape_inference [SIZE]``.

Large symbols without shapes, of a size and of twice that size (``testing/mxnet/deep_symbols.py``).
The work is linear where the ratio of the times is about 2; the table goes into benchmarks.md.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator

from benchmarks.measure import publish, table
from serde.formats.mxnet.bind.bind_params import bind_params
from serde.formats.mxnet.infer_shapes.infer_inputs import InputShapes
from serde.formats.mxnet.io.params import parse_params
from serde.formats.mxnet.io.symbol_json import parse_symbol
from testing.mxnet.deep_symbols import MODELS
from testing.mxnet.written import params_bytes

SIZE, REPEATS = 5_000, 3
COLUMNS = ("symbol", "nodes", "time, s", "nodes", "time, s", "ratio", "relations a node")


def measure_work(kind: str, size: int) -> tuple[int, float, float]:
    """Nodes of a symbol, the least processor seconds of inference, and evaluations for a node."""
    text, arrays = MODELS[kind](size)
    symbol = parse_symbol(text)
    graph = bind_params(symbol, parse_params(params_bytes(arrays), kind), kind)
    seconds, inferred = [], None
    for _ in range(REPEATS):
        gc.collect()
        gc.disable()
        start = time.process_time()
        inferred = InputShapes(graph, symbol.variables)
        seconds.append(time.process_time() - start)
        gc.enable()
    assert inferred is not None
    count = len(graph.nodes)
    return count, min(seconds), inferred.propagation.evaluations / count


def rows(size: int) -> Iterator[tuple[str, ...]]:
    """A row for each kind of symbol."""
    for kind in MODELS:
        (few, first, _), (many, second, work) = (measure_work(kind, n) for n in (size, 2 * size))
        yield (kind, f"{few:,}", f"{first:.2f}", f"{many:,}", f"{second:.2f}",
               f"{second / first:.1f}", f"{work:.1f}")  # fmt: skip


if __name__ == "__main__":
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else SIZE
    text = (
        "Shapes of the inputs of MXNet symbols that nobody gives, inferred from the operators. "
        "The best of 3 runs.\n\n"
    )
    publish("Shapes of inputs", text + table(COLUMNS, rows(layers)))
