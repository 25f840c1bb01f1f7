"""Operators that draw random numbers, and their densities."""
