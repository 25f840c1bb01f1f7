"""Front ends: programs of other libraries that are run once and recorded as a graph of the IR."""
