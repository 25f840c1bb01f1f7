"""Choices and loops, which elaboration makes."""

from __future__ import annotations

from serde.ir.graph import Graph

from ..rules import reads


@reads("if")
def read_if(g, condition, *, then: Graph, otherwise: Graph):
    made = g.If(condition, then_branch=then, else_branch=otherwise, outputs=len(then.outputs))
    return made if isinstance(made, tuple) else (made,)


@reads("while")
def read_while(g, start, *state, body: Graph):
    made = g.Loop(None, start, *state, body=body, outputs=len(body.outputs) - 1)
    return made if isinstance(made, tuple) else (made,)
