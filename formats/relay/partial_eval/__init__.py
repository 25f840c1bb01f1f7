"""Partial evaluation of a module: what TVM's PartialEvaluate does, into a graph."""
