"""Forms of operators the importer gets wrong, by what it does with them."""

from __future__ import annotations

from serde.ir.graph import Node

from .target import refuses


@refuses("LayerNormalization")
def statistics(node: Node) -> str | None:
    return "the mean and deviation beside the result" if len(node.outputs) > 1 else None


@refuses("Pad")
def pads(node: Node) -> str | None:
    _, added, *_ = node.inputs
    told = added is not None and added.tensor is not None
    return None if told else "dynamic pads"


@refuses("AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool")
def same_pads(node: Node) -> str | None:
    """Pads that depend on sizes; where these are numbers, the pads are numbers as well."""
    pads = str(node.attrs.get("auto_pad", "NOTSET"))
    if not pads.startswith("SAME"):
        return None
    return f"auto_pad={pads!r} of symbolic sizes: give numbers (--static, --input)"
