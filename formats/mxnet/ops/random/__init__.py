"""Operators that draw random numbers, and their densities."""

from . import pdf, sampling

__all__ = ["pdf", "sampling"]
