"""Measurements, run from the checkout as modules; benchmarks.md holds what they found."""
