"""ONNX for ncnn."""
