"""Runs TensorFlow Lite's files on arrays, in a process of its own, behind ``worker_loop``.

A file is loaded with whether delegates may run parts of it, where ``None`` keeps inner tensors too,
the numbers of variables, which are the last inputs and outputs, and those of the tensors to return
in place of the outputs.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from .worker_loop import serve, time_calls


class Model(NamedTuple):
    """The interpreter of a file, its variables, and the tensors to return."""

    interpreter: Any
    variables: Sequence[int]
    places: Sequence[int]


def load_model(
    path: str, delegates: bool | None, variables: Sequence[int] = (), places: Sequence[int] = ()
) -> Model:
    """The model of a file."""
    from ai_edge_litert import interpreter as litert

    kinds = litert.OpResolverType
    kernels = kinds.BUILTIN if delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = litert.Interpreter(
        model_path=path, experimental_op_resolver_type=kernels, num_threads=1,
        experimental_preserve_all_tensors=delegates is None,
    )  # fmt: skip
    return Model(interpreter, variables, places)


def run(loaded: Model, operands: Sequence[Any], count: int) -> tuple[list[Any], list[float]]:
    """What the model computes of arrays, and the seconds of a run."""
    model, variables, places = loaded
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
    results = model.get_output_details()
    places = places or [d["index"] for d in results] + [*variables]
    known = {d["index"]: d for d in results}
    return [read_tensor(model, place, known.get(place)) for place in places], seconds


def read_tensor(model: Any, place: int, detail: Any) -> Any:
    """A tensor; LiteRT returns none of a size of 0 that it found in the run."""
    if detail is not None and 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    return model.get_tensor(place)


def main() -> None:
    """Run a file for each request."""
    import ai_edge_litert

    serve(getattr(ai_edge_litert, "__version__", ""), load_model, run)


if __name__ == "__main__":
    main()
