"""Rule tables and the walk that applies them to a graph and its subgraphs."""
