"""ONNX for tract."""
