"""Rewrite a graph until a target supports every node of it."""
