"""ONNX for MNN."""
