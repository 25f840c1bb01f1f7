"""Runs TensorFlow Lite's files on arrays, in a process of its own.

It reads a line for each run on its standard input, as JSON: the path of a file, those of ``.npz``
files of the inputs in their order and of the outputs, which it writes, whether delegates may run
parts of it, and the numbers of variables, which are the last inputs and outputs. It answers with a
line. The interpreter of the last run is kept.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def load_model(path: str, with_delegates: bool) -> Any:
    """The interpreter of a file."""
    from ai_edge_litert import interpreter as litert

    kinds = litert.OpResolverType
    kernels = kinds.BUILTIN if with_delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return litert.Interpreter(model_path=path, experimental_op_resolver_type=kernels, num_threads=1)


def run(model: Any, inputs: str, outputs: str, variables: Sequence[int] = ()) -> None:
    """What the model computes of a file's arrays, into another file."""
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
    model.invoke()
    places = [detail["index"] for detail in model.get_output_details()] + [*variables]
    np.savez(outputs, **{str(at): model.get_tensor(place) for at, place in enumerate(places)})


def answer(reply: Mapping[str, str]) -> None:
    """Write a line."""
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run a file for each line that is read."""
    import ai_edge_litert

    answer({"version": getattr(ai_edge_litert, "__version__", "")})
    last = model = None
    for line in sys.stdin:
        path, inputs, outputs, with_delegates, *variables = json.loads(line)
        try:
            if (path, with_delegates) != last:
                last, model = None, load_model(path, with_delegates)
            last = path, with_delegates
            run(model, inputs, outputs, *variables)
            reply: dict[str, str] = {}
        except Exception as error:
            last = None
            reply = {"error": f"{type(error).__name__}: {error}"}
        answer(reply)


if __name__ == "__main__":
    main()
