"""Rewrites of graphs of TensorFlow Lite's operators."""
