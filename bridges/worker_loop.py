"""The loop of a process that runs models on arrays: the program of each worker begins with it.

It reads a line for each request on its standard input, as JSON: the path of a model, those of
``.npz`` files of the inputs in their order and of the outputs, which it writes, how often to run,
and what else the worker takes. It answers with a line: the seconds of one run, or an error. The
last model is kept.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any


def time_calls(call: Callable[[], Any], count: int) -> tuple[Any, list[float]]:
    """What the last of so many calls returns, and one's seconds: of the clock, of the processor."""
    start = time.perf_counter(), time.process_time()
    for _ in range(count):
        result = call()
    end = time.perf_counter(), time.process_time()
    return result, [(b - a) / count for a, b in zip(start, end, strict=True)]


def answer(answers: int, reply: Mapping[str, Any]) -> None:
    """Write a line into the file of a number."""
    os.write(answers, f"{json.dumps(reply)}\n".encode())


def serve(version: str, load: Callable[..., Any], run: Callable[..., Any], of_load: int) -> None:
    """Answer requests: ``load(path, *options)`` gives a model, ``run(model, …)`` the seconds.

    The first ``of_load`` options are those of ``load``, the others of ``run``.
    """
    answers = os.dup(1)
    os.dup2(2, 1)  # what frameworks print is no answer
    answer(answers, {"version": version})
    last = model = None
    for line in sys.stdin:
        path, inputs, outputs, count, *options = json.loads(line)
        key = path, *options[:of_load]
        try:
            if key != last:
                last, model = None, load(*key)
            last = key
            reply = {"seconds": run(model, inputs, outputs, count, *options[of_load:])}
        except Exception as error:
            last, reply = None, {"error": f"{type(error).__name__}: {error}"}
        answer(answers, reply)
