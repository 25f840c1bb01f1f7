"""Sources that are run to be compared with."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

import serde
from serde.errors import SerdeError
from serde.verification.source_runs import prepare_cut


def test_a_model_that_is_only_read_is_not_cut() -> None:
    """A file that ends inside is written in the source's format, which serde may only read."""
    graph = serde.load(Path(__file__).parents[1] / "data/pt2/leaky.pt2")
    bridge = types.SimpleNamespace(format="pt2", name="pytorch")
    with pytest.raises(SerdeError, match="files run as a whole.* Export the model with these"):
        prepare_cut(bridge, graph, [graph.outputs[0].name])
