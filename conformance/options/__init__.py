"""What options promise, tested as properties of their results on many models."""
