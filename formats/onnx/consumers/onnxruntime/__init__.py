"""ONNX for ONNX Runtime: forms it gets wrong in any profile, and the target of its own."""
