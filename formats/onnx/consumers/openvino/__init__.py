"""ONNX for OpenVINO."""
