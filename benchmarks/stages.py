"""Time the stages of a conversion.

``python -m benchmarks.stages FIRST SOURCE TARGET OPSET [SHAPE]``, OPSET 0 for no ONNX file

Prints JSON: processor seconds for reading, for folding (rules, inference, passes, checks), for
writing, and for ``serde.convert``, which does all three. ``FIRST``, a smaller model of the kind,
goes through before it, so that what is loaded once (operator schemas) is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from serde import api


def time_call(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Processor seconds a call takes, and its result."""
    start = time.process_time()
    result = function(*arguments, **options)
    return time.process_time() - start, result


def stages(source: str, target: str, opset: int, inputs: Any) -> dict[str, float]:
    """Processor seconds by stage."""
    into = {"opset": opset} if opset else {}
    read, _ = time_call(api.read, source, inputs=inputs)
    load, graph = time_call(api.load, source, inputs=inputs)
    write, _ = time_call(api.save, graph, target, **into)
    del graph
    together, _ = time_call(api.convert, source, target, inputs=inputs, **into)
    return {"read": read, "fold": load - read, "write": write, "together": together}


if __name__ == "__main__":
    first, model, into, version, *shape = sys.argv[1:]
    shapes = {"data": tuple(map(int, shape[0].split(",")))} if shape else None
    stages(first, into, int(version), shapes)
    print(json.dumps(stages(model, into, int(version), shapes)))
