"""A table of rules and graphs of a toy vocabulary, to be rewritten."""

from __future__ import annotations

from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph, Node, Source, Value
from serde.rewrite.rules import RuleTable

F32 = DType.FLOAT32


def parse(kind, raw):
    """Attributes as text, as MXNet writes them."""
    readers = {int: int, float: float, str: str, bool: "True".__eq__,
               Ints: lambda t: tuple(int(i) for i in t.strip("()").split(",") if i)}  # fmt: skip
    return readers[kind](raw)


def table(**options):
    registry = RuleTable("toy → ir", parse=parse, hidden=lambda n: n.startswith("__"), **options)

    @registry("Conv", ignore=("workspace",), only={"layout": ("NCHW", "None")})
    def read_conv(
        g, x, w, b=None, *, kernel: Ints, stride=(1, 1), num_group=1, eps=1e-3, bias=True
    ):
        return g.Relu(x)

    registry.rename({"abs": "Abs", "neg": "Neg"})
    registry("split", "chunk")(lambda g, x, *, n=2: g.Split(x, num_outputs=n, outputs=n))
    registry("stack")(lambda g, *xs, axis=0: g.Concat(*xs, axis=axis))
    return registry


def graph_of(*nodes, outputs=None, inputs=None):
    """``nodes`` as (op, operands, outputs, attributes) by names; what nothing makes is an input."""
    values, toy_nodes = {}, []
    for op, operands, results, attrs in nodes:
        ins = tuple(values.setdefault(n, Value(n, F32, ("N", 4))) for n in operands.split())
        outs = tuple(values.setdefault(n, Value(n)) for n in results.split())
        toy_nodes.append(Node(op, ins, outs, attrs, "toy", results.split()[0],
                              (Source("toy", op, results.split()[0]),)))  # fmt: skip
    computed = {v for n in toy_nodes for v in n.outputs}
    ends = (outputs or nodes[-1][2]).split()
    heads = tuple(v for v in values.values() if v not in computed)
    return Graph("g", heads, tuple(values[n] for n in ends), tuple(toy_nodes), "toy")
