"""Operators that draw random numbers, and their densities."""

from . import pdf

__all__ = ["pdf"]
