"""The inputs and outputs of a written module, which is run and not read.

They are in the header of its weights, as JSON under keys that no array has: a list of name, element
type and shape for each; sizes by name are strings, and unknown ones null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from serde.errors import MalformedFile
from serde.io.sniff import open_regular, refuse_missing
from serde.ir.graph import DType, Graph, Node, Value

from .io import safetensors

WEIGHTS = ".safetensors"
INPUTS, OUTPUTS = "__inputs__", "__outputs__"
AGAIN = "convert the model again, and keep the files together"


def to_metadata(graph: Graph) -> dict[str, str]:
    """The entries of a header that tell inputs and outputs."""
    return {INPUTS: _dump(graph.inputs), OUTPUTS: _dump(graph.outputs)}


def _dump(values: Sequence[Value]) -> str:
    rows = [[v.name, v.dtype and v.dtype.value, v.shape and list(v.shape)] for v in values]
    return json.dumps(rows)


def read_interface(path: Path) -> Graph:
    """A graph of the inputs and outputs of the module at ``path``, which is one node.

    Raises:
        MalformedFile: without its weights, or where these do not tell.
    """
    refuse_missing(path)
    weights = path.with_suffix(WEIGHTS)
    if not weights.exists():
        raise MalformedFile(path, f"its weights are missing: there is no {weights.name}. {AGAIN}")
    with open_regular(weights) as file:
        metadata = safetensors.read_header(file, weights).get("__metadata__")
    if not isinstance(metadata, Mapping) or not {INPUTS, OUTPUTS} <= metadata.keys():
        raise MalformedFile(weights, f"it does not tell the model's inputs and outputs. {AGAIN}")
    try:
        inputs, outputs = ([_to_value(*row) for row in json.loads(metadata[k])]
                           for k in (INPUTS, OUTPUTS))  # fmt: skip
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"its header does not tell inputs and outputs: {error}. {AGAIN}"
        raise MalformedFile(weights, reason) from error
    module = Node("Module", tuple(inputs), tuple(outputs), domain="torch", name=path.stem)
    return Graph(path.stem, tuple(inputs), tuple(outputs), (module,))


def _to_value(name: Any, dtype: Any, shape: Any) -> Value:
    """The value of a row.

    Raises:
        TypeError, ValueError: for what is none.
    """
    is_size = all(d is None or isinstance(d, str) or (type(d) is int and d >= 0)
                  for d in shape or ())  # fmt: skip
    if not isinstance(name, str) or not is_size:
        raise ValueError("a name or a size is of another type")
    kind = None if dtype is None else DType(dtype)
    return Value(name, kind, None if shape is None else tuple(shape))
