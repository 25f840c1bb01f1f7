"""Differential testing: random graphs by every way, compared with ONNX Runtime."""
