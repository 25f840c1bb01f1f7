"""Bridges to frameworks' live objects; each imports its framework inside functions only."""
