"""From graphs of PyTorch expressions to source."""
