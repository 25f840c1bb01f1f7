"""The loop of a process that runs models on arrays: the program of each worker begins with it.

It reads orders on its standard input, a line of JSON each: to load a model, to run one on the
values of a file, or to drop one. It answers the first two with a line: nothing more, the seconds of
one run, or an error. Values go through files, whose arrays are mapped where they are large.
They lie in a folder, the program's last argument, which is removed once nobody gives orders.
"""

import gc
import json
import os
import queue
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

ALIGNED = 64  # bytes that arrays begin at multiples of
HEAD = 8  # bytes that tell how long the header is
MAPPED = 1 << 24  # bytes of a file that is mapped, and not read
Describe = Callable[[Any], tuple[str, np.ndarray[Any, Any]]]
Make = Callable[[str, Sequence[int], np.ndarray[Any, Any]], Any]


def describe_array(value: Any) -> tuple[str, np.ndarray[Any, Any]]:
    """The name of an array's type, and the array."""
    return str(np.asarray(value).dtype), np.asarray(value)


def make_array(name: str, shape: Sequence[int], data: np.ndarray[Any, Any]) -> Any:
    """The array of a type, from its bytes."""
    try:
        dtype = np.dtype(name)
    except TypeError:  # of a package that adds types
        import ml_dtypes

        dtype = np.dtype(getattr(ml_dtypes, name))
    return data.view(dtype).reshape(shape)


def write_values(path: str, values: Sequence[Any], describe: Describe = describe_array) -> None:
    """Write arrays, strings, numbers, and lists and mappings of them, into a file."""
    arrays: list[np.ndarray[Any, Any]] = []
    size = 0

    def enter(value: Any) -> Any:
        nonlocal size
        if value is None or isinstance(value, (str, int, float)):
            return value
        if isinstance(value, (list, tuple)):
            return {"list": [*map(enter, value)]}
        if isinstance(value, Mapping):
            return {"map": [[enter(k), enter(v)] for k, v in value.items()]}
        name, array = describe(value)
        if array.dtype.kind in "OSU":
            return {"strings": array.astype("U").ravel().tolist(), "shape": array.shape}
        size += -size % ALIGNED
        form = {"type": name, "shape": array.shape, "at": size, "bytes": array.nbytes}
        arrays.append(array)
        size += array.nbytes
        return form

    header = json.dumps(enter(values)).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(HEAD, "little") + header)
        for array in arrays:
            file.write(bytes(-file.tell() % ALIGNED))
            if array.size:
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def read_values(path: str, make: Make = make_array) -> Any:
    """What ``write_values`` has written; the file may be removed then."""
    if os.name == "posix" and os.path.getsize(path) > MAPPED:
        data = np.asarray(np.memmap(path, np.uint8, "c"))
    else:
        data = np.fromfile(path, np.uint8)
    start = HEAD + int.from_bytes(data[:HEAD].tobytes(), "little")
    header = json.loads(data[HEAD:start].tobytes())
    start += -start % ALIGNED

    def build(form: Any) -> Any:
        if not isinstance(form, dict):
            return form
        if "list" in form:
            return [*map(build, form["list"])]
        if "map" in form:
            return {build(k): build(v) for k, v in form["map"]}
        if "strings" in form:
            return np.array(form["strings"], object).reshape(form["shape"])
        at = start + form["at"]
        return make(form["type"], form["shape"], data[at : at + form["bytes"]])

    return build(header)


def time_calls(call: Callable[[], Any], count: int) -> tuple[Any, list[float]]:
    """What the last of so many calls returns, and one's seconds: of the clock, of the processor."""
    start = time.perf_counter(), time.process_time()
    for _ in range(count):
        result = call()
    end = time.perf_counter(), time.process_time()
    return result, [(b - a) / count for a, b in zip(start, end, strict=True)]


def read_orders() -> queue.SimpleQueue[str]:
    """The lines of the standard input; this process ends once the other one closes it.

    The other one may have been killed, so the folder of both is removed here.
    """
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        shutil.rmtree(sys.argv[-1], ignore_errors=True)
        os._exit(0)  # whatever is being computed: nobody waits for it

    threading.Thread(target=read, daemon=True).start()
    return lines


def serve(
    version: str, load: Callable[..., Any], run: Callable[..., Any],
    describe: Describe = describe_array, make: Make = make_array,
) -> None:  # fmt: skip
    """Obey orders.

    ``load`` makes a model; ``run(model, values, count, **options)`` gives its results and the
    seconds of one of so many runs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process tells when to end
    answers = os.dup(1)
    os.dup2(2, 1)  # what frameworks print is no answer

    def answer(**reply: Any) -> None:
        with suppress(BrokenPipeError):  # the other process was killed
            os.write(answers, f"{json.dumps(reply)}\n".encode())

    orders = read_orders()
    answer(version=version)
    gc.freeze()  # what is imported, so that looking for models to free takes no time
    models: dict[int, Any] = {}
    while True:
        order = json.loads(orders.get())
        at = order["model"]
        if order["do"] == "drop":
            models.pop(at, None)
            gc.collect()  # models of frameworks refer to themselves, and some are large
            continue
        try:
            if order["do"] == "load":
                models[at] = load(**order["options"])
                answer()
            else:
                values = read_values(order["inputs"], make)
                results, seconds = run(models[at], values, order["count"], **order["options"])
                write_values(order["outputs"], results, describe)
                answer(seconds=seconds)
        except Exception as error:
            number = getattr(error, "errno", None)  # of an error of the system
            answer(error=str(error), kind=type(error).__name__, number=number)
        values = results = None
