"""What is done to a whole graph of ONNX Runtime's operators: faster forms of integer layers."""

from __future__ import annotations

from serde.ir.graph import Graph

from .integer_kernels import choose_integer_kernels
from .row_blocks import compute_in_blocks
from .scaled_products import join_scaled_products


def prepare(graph: Graph) -> Graph:
    """A legal graph whose products of integers are exact on every processor, and fast."""
    return join_scaled_products(choose_integer_kernels(compute_in_blocks(graph)))
