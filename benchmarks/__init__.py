"""Time and memory, measured from the checkout; docs/results/benchmarks.md holds the figures."""
