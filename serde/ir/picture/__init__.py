"""A picture of a graph: what is drawn, where it is placed, and the SVG.

Nothing here imports ``serde.ir.graph``, whose ``Graph`` draws itself with it.
"""
