"""The nodes of a subgraph, emitted where they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serde.errors import require
from serde.ir.graph import Graph, Value

Env = dict[Value, Value]


def inline_subgraph(g: Any, body: Graph, operands: Sequence[Value]) -> list[Value]:
    """Emit the nodes of ``body``, its inputs being ``operands``; return its outputs.

    Types are inferred anew, so nodes that could not be legalized for want of one are tried again.
    """
    return _emit_nodes(g, body, dict(zip(body.inputs, operands, strict=True)))


def _emit_nodes(g: Any, body: Graph, env: Env) -> list[Value]:
    for node in body.nodes:
        g.resume()
        inputs = tuple(v and env.get(v, v) for v in node.inputs)
        require(not node.domain, f"{node.op} of the domain {node.domain!r}")
        attrs = {
            n: _subgraph(g, v, env) if isinstance(v, Graph) else v for n, v in node.attrs.items()
        }
        outs = g.emit(node.op, inputs, attrs, len(node.outputs))
        env.update(zip(node.outputs, outs if isinstance(outs, tuple) else (outs,), strict=True))
    return [env.get(v, v) for v in body.outputs]


def _subgraph(g: Any, body: Graph, outer: Env) -> Graph:
    inner, env = g.child(body.name), dict(outer)
    for value in body.inputs:
        env[value] = inner.input(value.name, value.dtype, value.shape, value.container)
    return inner.build(_emit_nodes(inner, body, env))  # type: ignore[no-any-return]
