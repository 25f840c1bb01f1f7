"""Networks that draw random numbers, compared draw by draw: for ``conformance.zoo.compare``.

serde's conversion makes its draws of noise that is an input, and tells what each sampler read and
gave. MXNet runs the same symbol with those draws in the samplers' places, and tells what each
would have read. So all but the samplers is compared; their distributions are compared with
MXNet's in tests/mxnet/test_random.py.
"""

from __future__ import annotations

import json
import math
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

from serde.bridges.mxnet import import_mxnet
from serde.formats.mxnet.ops.random.sampling import draws

Arrays = Mapping[str, np.ndarray[Any, Any]]


class Drawing(NamedTuple):
    """The prefix of a symbol whose layers have names of their own, what it shows (its outputs, and
    what its samplers read), what its samplers give, and the prefix of the symbol that takes this
    as inputs.
    """

    prefix: Path
    shown: tuple[str, ...]
    drawn: tuple[str, ...]
    rest: Path


def drawing(prefix: Path) -> Drawing | None:
    """The symbol of ``prefix`` without its samplers, if it has any."""
    mx = import_mxnet()
    graph = json.loads(mx.sym.load(f"{prefix}-symbol.json").tojson())
    places = [i for i, node in enumerate(graph["nodes"]) if node["op"] in draws.rules]
    if not places:
        return None
    for at, node in enumerate(graph["nodes"]):
        if node["op"] != "null":
            node["name"] += f"_{at}"
    stem = write_model(prefix, "whole", graph)
    symbol = mx.sym.load(f"{stem}-symbol.json")
    internals, shown = symbol.get_internals(), symbol.list_outputs()
    for at in places:
        node = graph["nodes"][at]
        read = internals[f"{node['name']}_output"].get_children().list_outputs()
        for name, link in zip(read, node["inputs"], strict=True):
            if name not in shown:
                shown.append(name)
                graph["heads"].append(link)
        graph["nodes"][at] = {"op": "null", "name": f"{node['name']}_output", "inputs": []}
    graph["arg_nodes"] = [i for i, node in enumerate(graph["nodes"]) if node["op"] == "null"]
    drawn = tuple(graph["nodes"][i]["name"] for i in places)
    return Drawing(stem, tuple(shown), drawn, write_model(prefix, "rest", graph))


def write_model(prefix: Path, name: str, graph: Any) -> Path:
    """The prefix under which a symbol and the parameters of another stand."""
    path = prefix.with_name(f"{prefix.name}_{name}")
    Path(f"{path}-symbol.json").write_text(json.dumps(graph))
    shutil.copy(f"{prefix}-0000.params", f"{path}-0000.params")
    return path


def noise(session: onnxruntime.InferenceSession, feeds: Arrays) -> Arrays:
    """Noise for the inputs a conversion has besides, whatever they call the batch."""
    batch = len(next(iter(feeds.values())))
    arrays = {}
    for needed in session.get_inputs():
        if needed.name not in feeds:
            dims = [d if isinstance(d, int) else eval_size(d, batch) for d in needed.shape]
            generator = np.random.default_rng(zlib.crc32(needed.name.encode()))
            kind = generator.random if "uniform" in needed.name else generator.standard_normal
            arrays[needed.name] = kind(dims).astype("float32")
    return arrays


def eval_size(size: str, batch: int) -> int:
    """A size that is a product of the batch, called N, and numbers."""
    return math.prod(batch if factor == "N" else int(factor) for factor in size.split("*"))
