"""ONNX for onnx2torch, which makes PyTorch modules of it."""
