"""The process of one model: it reads orders from its standard input, a line of JSON each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from serde.backends.runner import prepare
from serde.errors import SerdeError, UsageError
from serde.io.arrays import read_npz
from serde.io.child_process import child_environment, end_with_parent
from serde.ir.graph import Value

STATUS = "/proc/{}/status"  # of Linux
PEAK = re.compile(rb"VmHWM:\s+(\d+) kB")


def main() -> None:
    """Load the model of the first order, then obey until there are no more."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what frameworks print is no answer

    def answer(fields: Mapping[str, Any]) -> None:
        os.write(answers, json.dumps(fields).encode() + b"\n")

    order = json.loads(sys.stdin.readline())
    end_with_parent(order["parent"])
    try:
        run, about, pid = load_model(order)
    except (SerdeError, OSError) as error:
        answer({"error": str(error), "kind": type(error).__name__})
        return
    answer(about)
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if "memory" in order:
                answer({"memory": read_peak(pid)})
            else:
                answer({"seconds": run(order["run"])})
        except SerdeError as error:
            answer({"error": str(error), "kind": type(error).__name__})


Timed = Callable[[int], tuple[float, float]]


def load_model(order: Mapping[str, Any]) -> tuple[Timed, dict[str, Any], int | None]:
    """A function that times runs, how long loading and the fastest run take, the process if any."""
    start = time.perf_counter()
    options = {} if order["params"] is None else {"params": order["params"]}
    model = prepare(order["model"], threads=order["threads"], apart=False, **options)
    loaded = time.perf_counter() - start
    run = model.bind_inputs(match_inputs(model.inputs, read_npz(order["feeds"])))
    least = min(run(1)[0] for _ in range(3))
    about = {"runtime": model.runtime, "load_seconds": loaded, "least_seconds": least}
    return run, about, model.pid


def match_inputs(inputs: tuple[Value, ...], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by the names that a model has: its own, or else those at the same places."""
    by_name = {v.name: v for v in inputs}
    known = {n: x for n, x in arrays.items() if n in by_name}
    if not known and len(arrays) > len(inputs):
        raise UsageError(f"{len(arrays)} arrays are more than the model's {len(inputs)} inputs")
    known = known or {v.name: x for v, x in zip(inputs, arrays.values(), strict=False)}
    return {name: _cast(by_name[name], x) for name, x in known.items()}


def _cast(value: Value, array: Any) -> Any:
    """Numbers in the type that the model takes: another model may compute in fewer bits."""
    if value.dtype is None or value.dtype.kind not in "fiu" or array.dtype.kind not in "fiu":
        return array
    return np.asarray(array).astype(value.dtype.numpy, copy=False)


def read_peak(pid: int | None) -> int:
    """The bytes of memory that a process had at most, this one if None.

    Where the system does not tell that of other processes, those that it has now.
    """
    if sys.platform == "linux":
        with open(STATUS.format("self" if pid is None else pid), "rb") as file:
            match = PEAK.search(file.read())
        if match is not None:
            return int(match[1]) << 10
    if pid is not None:
        command = ["ps", "-o", "rss=", "-p", str(pid)]
        shown = subprocess.run(command, capture_output=True, check=True, env=child_environment())
        return int(shown.stdout) << 10
    import resource

    unit = 1 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
