"""Backends: what an accelerator takes of a model, the parts it gets, and how they are run."""
