"""What the ONNX standard declares and computes, node by node: schemas, inference, folding."""
