"""Forms of operators the importer gets wrong, by what it does with them."""

from __future__ import annotations

from serde.graph import Node

from .table import refuses


@refuses("LayerNormalization")
def statistics(node: Node) -> str | None:
    return "the mean and deviation beside the result" if len(node.outputs) > 1 else None
