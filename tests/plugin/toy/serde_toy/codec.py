"""Toy files ↔ graphs.

    toy 1
    input x 2 3
    weight w 3 2 = 1 2 3 4 5 6
    h = dense x w
    y = scale h by=0.5
    output y

Sizes may be names. Every value is a float32 tensor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from serde.errors import MalformedFile
from serde.io.atomic_write import Replacing
from serde.io.sniff import open_regular
from serde.ir.graph import DType, Graph, Node, Shape, Source, Tensor, Value

FIRST_LINE = "toy 1\n"


def decode(path: Path) -> Graph:
    """Read the file at ``path``."""
    with open_regular(str(path)) as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    values: dict[str, Value] = {}
    inputs, outputs, nodes = [], [], []
    for number, line in enumerate(lines[1:], 2):
        words = line.split()
        try:
            match words:
                case []:
                    continue
                case ["input", name, *dims]:
                    values[name] = Value(name, DType.FLOAT32, _shape(dims))
                    inputs.append(values[name])
                case ["weight", name, *rest]:
                    values[name] = _weight(name, rest)
                case ["output", *names]:
                    outputs += [values[n] for n in names]
                case [name, "=", op, *rest]:
                    attrs = dict(w.split("=", 1) for w in rest if "=" in w)
                    operands = tuple(values[w] for w in rest if "=" not in w)
                    values[name] = Value(name)
                    source = (Source("toy", op, name),)
                    nodes.append(Node(op, operands, (values[name],), attrs, "toy", name, source))
                case _:
                    raise ValueError("cannot be understood")
        except KeyError as error:
            raise MalformedFile(path, f"nothing before defines {error}", f"line {number}") from None
        except ValueError as error:
            raise MalformedFile(path, str(error), f"line {number}") from None
    return Graph(Path(path).stem, tuple(inputs), tuple(outputs), tuple(nodes), "toy")


def _shape(dims: list[str]) -> Shape:
    return tuple(int(d) if d.isdigit() else d for d in dims)


def _weight(name: str, words: list[str]) -> Value:
    at = words.index("=")
    shape = tuple(int(d) for d in words[:at])
    array = np.array(words[at + 1 :], np.float32).reshape(shape)
    return Value(name, DType.FLOAT32, shape, Tensor.of(array))


def encode(graph: Graph, path: Path, decimals: int | None = None) -> list[str]:
    """Write ``graph``, whose operators are the toy's, to ``path``."""
    lines = [FIRST_LINE.strip()]
    lines += [f"input {v.name} {_words(v.ranked_shape)}" for v in graph.inputs]
    for v in graph.constants():
        numbers = v.array().ravel().tolist()
        if decimals is not None:
            numbers = [round(n, decimals) for n in numbers]
        lines.append(f"weight {v.name} {_words(v.ranked_shape)} = {_words(numbers)}")
    for node in graph.nodes:
        operands = [v.name for v in node.inputs if v is not None]
        attrs = [f"{k}={v}" for k, v in sorted(node.attrs.items())]
        lines.append(f"{node.outputs[0].name} = {' '.join([node.op, *operands, *attrs])}")
    lines.append(f"output {_words([v.name for v in graph.outputs])}")
    with Replacing(str(path)) as files, files.open(str(path)) as out:
        out.write(("\n".join(lines) + "\n").encode())
    return files.written


def _words(items) -> str:  # type: ignore[no-untyped-def]
    return " ".join(map(str, items))
