"""Where the batch lies in each value of a graph, and the graph rewritten for another batch."""
