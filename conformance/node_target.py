"""What a framework has to offer to be a target of conformance/node_tests.py."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import onnx


class NotRun(Exception):
    """The framework has the model and cannot run it here, for a reason that is its own."""


class Target(ABC):
    """A framework that models are converted to and run in."""

    name: str  # on the command line
    title: str
    importer: str  # the framework's own, as the page names it
    notes: str = ""  # what the page says of the comparison

    @abstractmethod
    def ours(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        """Convert with serde and run; raises SerdeError where refused, NotRun."""

    @abstractmethod
    def theirs(self, model: onnx.ModelProto, feeds: dict[str, Any]) -> Sequence[Any]:
        """Convert with the framework's own importer and run; any exception is a refusal."""

    def comparable(self, wanted: Any, got: Any) -> Any:
        """``got`` as it is to be compared, where the framework has other types than ONNX."""
        return got
