"""Time to trace NumPy code: ``python -m benchmarks.trace [--operations N]``."""

from __future__ import annotations

import argparse
import time

import numpy as np

import serde

MOST_SECONDS = 1.5  # for 10,000 operations


CHAINS = {
    "elementwise": (np.sin, np.abs, lambda v: v + 1, lambda v: v * 0.5, lambda v: v[:, ::-1]),
    "mixed": (
        lambda v: np.max(v, 1, keepdims=True), lambda v: np.where(v > 0, v, 0),
        lambda v: np.concatenate([v[:, :4], v[:, 4:]], 1), lambda v: np.pad(v, ((0, 0), (0, 7))),
        lambda v: np.clip(v, -1, 1), lambda v: v.reshape(-1, 8),
    ),
}  # fmt: skip


def chain(steps, count):
    """A function of ``count`` operations, of several kinds."""

    def run(x):
        for at in range(count):
            x = steps[at % len(steps)](x)
        return x

    return run


def measure(steps, count):
    """Processor seconds to trace ``count`` operations, the best of three runs, and the nodes."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        graph = serde.trace(chain(steps, count), ("N", 8))
        seconds.append(time.process_time() - start)
    return min(seconds), len(graph.nodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=10_000)
    count = parser.parse_args().operations
    most = MOST_SECONDS * count / 10_000
    for name, steps in CHAINS.items():
        seconds, nodes = measure(steps, count)
        print(f"{name}: {count:,} operations, {nodes:,} nodes: {seconds:.2f} s")
        if seconds > most:
            raise SystemExit(f"more than {most} s")


if __name__ == "__main__":
    main()
