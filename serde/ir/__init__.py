"""The intermediate graph: data, its printed form, and the builder that emits nodes."""
