"""Passes over graphs in the ``mxnet`` domain."""
