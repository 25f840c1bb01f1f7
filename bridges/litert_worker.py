"""Runs TensorFlow Lite's files on arrays, in a process of its own.

It reads a line for each request on its standard input, as JSON: the path of a file, those of
``.npz`` files of the inputs in their order and of the outputs, which it writes, how often to run,
whether delegates may run parts of it, and the numbers of variables, which are the last inputs and
outputs. It answers with a line: the seconds of one run, or an error. The last interpreter is kept.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def load_model(path: str, with_delegates: bool) -> Any:
    """The interpreter of a file."""
    from ai_edge_litert import interpreter as litert

    kinds = litert.OpResolverType
    kernels = kinds.BUILTIN if with_delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return litert.Interpreter(model_path=path, experimental_op_resolver_type=kernels, num_threads=1)


def time_calls(call: Callable[[], Any], count: int) -> tuple[Any, list[float]]:
    """What the last of so many calls returns, and one's seconds: of the clock, of the processor."""
    start = time.perf_counter(), time.process_time()
    for _ in range(count):
        result = call()
    end = time.perf_counter(), time.process_time()
    return result, [(b - a) / count for a, b in zip(start, end, strict=True)]


def run(
    model: Any, inputs: str, outputs: str, count: int, variables: Sequence[int] = ()
) -> list[float]:
    """Write what the model computes of a file's arrays; return the seconds of a run."""
    with np.load(inputs, allow_pickle=False) as arrays:
        operands = [arrays[key] for key in arrays.files]
    details = model.get_input_details()
    if len(operands) not in (len(details), len(details) + len(variables)):
        raise ValueError(f"{len(operands)} arrays for {len(details)} inputs")
    fed, states = operands[: len(details)], operands[len(details) :]
    for detail, array in zip(details, fed, strict=True):
        if tuple(detail["shape"]) != array.shape:
            model.resize_tensor_input(detail["index"], array.shape, strict=True)
    model.allocate_tensors()
    if not states:
        model.reset_all_variables()  # before inputs are set, which a file may call variables too
    for detail, array in zip(details, fed, strict=True):
        model.set_tensor(detail["index"], array)
    for place, array in zip(variables, states, strict=False):
        model.set_tensor(place, array)
    _, seconds = time_calls(model.invoke, count)
    places = [detail["index"] for detail in model.get_output_details()] + [*variables]
    np.savez(outputs, **{str(at): model.get_tensor(place) for at, place in enumerate(places)})
    return seconds


def answer(reply: Mapping[str, Any]) -> None:
    """Write a line."""
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run a file for each line that is read."""
    import ai_edge_litert

    answer({"version": getattr(ai_edge_litert, "__version__", "")})
    last = model = None
    for line in sys.stdin:
        path, inputs, outputs, count, with_delegates, *variables = json.loads(line)
        try:
            if (path, with_delegates) != last:
                last, model = None, load_model(path, with_delegates)
            last = path, with_delegates
            reply: dict[str, Any] = {"seconds": run(model, inputs, outputs, count, *variables)}
        except Exception as error:
            last = None
            reply = {"error": f"{type(error).__name__}: {error}"}
        answer(reply)


if __name__ == "__main__":
    main()
