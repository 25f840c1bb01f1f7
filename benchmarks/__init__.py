"""Measurements, run from the checkout as modules; docs/benchmarks.md holds what they found."""
