"""Modules in modules: where members are, what is called as a whole, and blocks that repeat."""
