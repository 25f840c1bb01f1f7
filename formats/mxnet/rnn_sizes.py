"""How many parameters an ``RNN`` has: all layers in one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .rules import parse

GATES = {"lstm": 4, "gru": 3}


class RnnSizes(NamedTuple):
    """The sizes of a recurrent network; ``projection`` is that of an LSTM's output."""

    hidden: int
    layers: int
    directions: int
    gates: int
    projection: int | None = None

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> RnnSizes:
        """Those that the attributes of a node declare."""
        return cls(
            parse(int, attrs["state_size"]),
            parse(int, attrs["num_layers"]),
            2 if parse(bool, attrs.get("bidirectional", "False")) else 1,
            GATES.get(str(attrs.get("mode")), 1),
            parse(int | None, attrs.get("projection_size", "None")),
        )

    @property
    def output(self) -> int:
        """The size of what one direction gives at each step, and of its state."""
        return self.hidden if self.projection is None else self.projection

    @property
    def rows(self) -> int:
        """The rows of one layer's weights."""
        return self.directions * self.gates * self.hidden

    def count_parameters(self, features: int) -> int:
        """How many numbers all layers have, where the first reads so many features."""
        deeper = (self.layers - 1) * (self.directions + 1) * self.output
        weights = self.rows * (features + self.output + deeper)
        projected = self.layers * self.directions * self.hidden * (self.projection or 0)
        return weights + self.layers * 2 * self.rows + projected

    def find_features(self, parameters: int) -> int | None:
        """The features that the first layer reads, None if so many parameters fit none."""
        features, rest = divmod(parameters - self.count_parameters(0), self.rows)
        return features if rest == 0 and features > 0 else None
