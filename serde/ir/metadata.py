"""Metadata of a graph that is about its inputs, outputs and weights, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

DOC_OF = "doc_string/"  # the documentation of a value, whose name follows
PROPERTIES_OF = "metadata_props/"  # keys and texts of an input or output, in turn
DENOTATIONS_OF = "denotations/"  # what an input or output and each of its axes stand for
BETWEEN = "\0"  # of several texts
OF_VALUES = (DOC_OF, PROPERTIES_OF, DENOTATIONS_OF)


def rename_values(metadata: Mapping[str, str], names: Mapping[str, str]) -> Mapping[str, str]:
    """Metadata with what is about inputs and outputs under their new names."""
    new_keys = {f"{kind}{old}": f"{kind}{new}" for kind in OF_VALUES for old, new in names.items()}
    if metadata.keys().isdisjoint(new_keys):
        return metadata
    return {new_keys.get(key, key): text for key, text in metadata.items()}


def without_values(metadata: Mapping[str, str], names: Iterable[str]) -> Mapping[str, str]:
    """Metadata without what is about values of these names."""
    keys = {f"{kind}{name}" for kind in OF_VALUES for name in names}
    return {key: text for key, text in metadata.items() if key not in keys}
