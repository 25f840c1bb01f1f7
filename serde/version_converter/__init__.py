"""Changes between versions of the ONNX standard."""
