"""Evaluate a module's ``main`` on symbols, as TVM's PartialEvaluate does."""
