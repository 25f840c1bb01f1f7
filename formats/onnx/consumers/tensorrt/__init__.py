"""ONNX for TensorRT."""
