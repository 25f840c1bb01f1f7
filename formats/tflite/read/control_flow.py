"""Branches, loops and calls of subgraphs."""

from __future__ import annotations

from serde.ir.builder import ensure_distinct_outputs
from serde.rewrite.subgraphs import Body

from ..rules import reads


@reads("IF")
def read_if(g, condition, *operands, then_branch: Body, else_branch: Body):
    if condition.tensor is not None:
        return (then_branch if condition.array().any() else else_branch)(g, *operands)
    graphs = {}
    for name, branch in (("then_branch", then_branch), ("else_branch", else_branch)):
        inner = g.child(name)
        results = ensure_distinct_outputs(inner, branch(inner, *operands))
        graphs[name] = inner.build(results)
    return g.If(g.Reshape(condition, []), outputs=len(results), **graphs)


@reads("WHILE")
def read_while(g, *states, cond: Body, body: Body):
    """The condition is looked at before each turn."""

    def goes_on(inner, operands):
        (going,) = cond(inner, *operands)
        return inner.Reshape(going, [])

    def step(inner, turn, go, *operands):
        results = body(inner, *operands)
        return goes_on(inner, results), *results

    return g.loop(step, None, goes_on(g, states), *states)


@reads("CALL", "STABLEHLO_COMPOSITE", ignore=("name", "composite_attributes", "version"))
def read_call(g, *operands, body: Body):
    return body(g, *operands)
