"""Graphs and reports that pages and pictures are made of."""

from __future__ import annotations

from serde.api.report import Report
from serde.ir.graph import DType, Graph, Node, Value

EVIL = '<img src=x onerror=alert(1)></script><script>alert("1")</script>'


def layer_chain(count, name="layer"):
    """A graph of as many nodes, one behind another."""
    value = x = Value("x", DType.FLOAT32, (1,))
    nodes = []
    for at in range(count):
        value, before = Value(f"{name}{at}", DType.FLOAT32, (1,)), value
        nodes.append(Node("Neg", (before,), (value,), name=f"{name}{at}"))
    return Graph("g", (x,), (value,), tuple(nodes))


def make_report(graph, **fields):
    """The report of a conversion that changed nothing."""
    report = Report("a/model-symbol.json", "b/model.onnx", "mxnet", "onnx", **fields)
    report.describe_source(graph)
    report.describe(graph)
    return report
