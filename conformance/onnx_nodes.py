"""ONNX's own node tests as sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from tests.node_cases import Case, all_cases, difference, frozen

from .matrix import Sample, Source

HALF = 2e-3  # relative tolerance of float16: two units in the last place


class NodeTests(Source):
    """The node tests of the installed onnx, as they are."""

    name = "onnx-nodes"

    @cached_property
    def by_name(self) -> Mapping[str, Case]:
        """Every node test."""
        return {c.name: c for c in all_cases()}

    def cases(self) -> list[str]:
        return [*self.by_name]

    def prepared(self, case: str) -> Case:
        """The test as it is run."""
        return self.by_name[case]

    def sample(self, case: str) -> Sample:
        found = self.prepared(case)
        graph = tidy(raise_to_ir(decode(found.model)))
        held = {t.name for t in found.model.graph.initializer}
        names = [i.name for i in found.model.graph.input if i.name not in held]
        if any(getattr(y, "dtype", None) == np.float16 for _, outs in found.data for y in outs):
            found = replace(found, rtol=max(found.rtol, HALF))

        def differs(wanted: Any, got: Any) -> str | None:
            return difference(found, wanted, got)

        data = [(dict(zip(names, feeds, strict=True)), wanted) for feeds, wanted in found.data]
        return Sample(graph, data, differs)


class ConstantNodeTests(NodeTests):
    """The node tests with bounds, axes and sizes as constants, as they are in models."""

    name = "onnx-nodes-constant"

    def prepared(self, case: str) -> Case:
        return frozen(self.by_name[case]) or self.by_name[case]
