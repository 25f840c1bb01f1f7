"""Relay's parameter files, and which of them belongs to a module."""
