"""What options promise, tested as properties of their results on many models."""

FAMILIES = ("rebatch", "precision", "editing", "quantized", "opsets", "parts", "comparison")
