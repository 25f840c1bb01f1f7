"""Rewrites of graphs of PyTorch expressions."""
