"""Metadata of a graph that is about its inputs and outputs, by their names."""

from __future__ import annotations

from collections.abc import Mapping

DOC_OF = "doc_string/"  # the documentation of an input or output, whose name follows


def rename_docs(metadata: Mapping[str, str], names: Mapping[str, str]) -> Mapping[str, str]:
    """Metadata with the documentation of inputs and outputs under their new names."""
    if not any(f"{DOC_OF}{old}" in metadata for old in names):
        return metadata
    old_names = {f"{DOC_OF}{old}": f"{DOC_OF}{new}" for old, new in names.items()}
    return {old_names.get(key, key): text for key, text in metadata.items()}
