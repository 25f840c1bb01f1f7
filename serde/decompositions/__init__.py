"""Operators a target lacks, in operators of the IR that it has: the builder, and shared rules."""
