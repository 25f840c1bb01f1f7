"""Time to trace NumPy code: ``python -m benchmarks.trace [--operations N]``."""

from __future__ import annotations

import argparse
import time

import numpy as np

import serde

MOST_SECONDS = 1.5  # for 10,000 operations


def chain(count):
    """A function of ``count`` operations, of several kinds."""

    def run(x):
        steps = (np.sin, np.abs, lambda v: v + 1, lambda v: v * 0.5, lambda v: v[:, ::-1])
        for at in range(count):
            x = steps[at % len(steps)](x)
        return x

    return run


def measure(count):
    """Processor seconds to trace ``count`` operations, the best of three runs."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        graph = serde.trace(chain(count), ("N", 8))
        seconds.append(time.process_time() - start)
        assert len(graph.nodes) >= count
    return min(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=10_000)
    count = parser.parse_args().operations
    print(f"{count:,} operations: {measure(count):.2f} s")


if __name__ == "__main__":
    main()
