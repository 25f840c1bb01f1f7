"""Shapes of inputs, inferred from the operators around them."""
