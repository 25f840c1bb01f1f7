"""Inputs and outputs of a result that have channels last where those of its source have not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from serde.ir.graph import Graph
from serde.passes.layout.ends import turn_ends
from serde.passes.layout.place import to_first, to_last

from .source_runs import Feeds, Images


class TurnedEnds:
    """Feeds of the result for its source, and the source's outputs as the result has them.

    ``graph`` is the IR with such inputs and outputs; ``images`` is the code before and behind it.
    ``rename`` has the names of the result by those of the source.
    """

    def __init__(
        self, graph: Graph, names: Collection[str], images: Images | None = None,
        rename: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.graph, self.images = turn_ends(graph, names), images
        old_names = {new: old for old, new in (rename or {}).items()}
        pairs = zip(graph.inputs, self.graph.inputs, strict=True)
        self.turned = frozenset(old_names.get(b.name, b.name) for a, b in pairs if a is not b)
        pairs = zip(graph.outputs, self.graph.outputs, strict=True)
        self.results = [a is not b for a, b in pairs]

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The images by name."""
        return dict.fromkeys(self.turned) | dict(self.images.inputs if self.images else {})

    def prepare(self, feeds: Feeds) -> Feeds:
        """What the source is fed, with channels first."""
        first = {
            name: np.ascontiguousarray(x.transpose(to_first(x.ndim))) if name in self.turned else x
            for name, x in feeds.items()
        }
        return first if self.images is None else self.images.prepare(first)

    def add_results(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of the result, of those of its source."""
        results = outputs if self.images is None else self.images.add_results(outputs)
        return [
            np.ascontiguousarray(y.transpose(to_last(y.ndim))) if is_turned else y
            for y, is_turned in zip(results, self.results, strict=True)
        ]
