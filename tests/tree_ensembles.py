"""Random ensembles of trees (``TreeEnsemble`` of ai.onnx.ml 5), with what ONNX Runtime computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from testing.onnx_live import run_model

FEATURES, DEPTH, TREES = 4, 3, 6
AVERAGE, SUM, LEAST, MOST = range(4)
BOUND, ALL_MODES = (0,), tuple(range(7))
MEMBER = 6
CASES: dict[str, dict[str, Any]] = {
    "average": {"aggregate": AVERAGE, "modes": ALL_MODES, "targets": 2},
    "sum": {"aggregate": SUM, "modes": ALL_MODES, "tracks": True},
    "sum of bounds": {"aggregate": SUM, "targets": 3},
    "least": {"aggregate": LEAST, "targets": 3, "tracks": True},
    "most": {"aggregate": MOST, "modes": ALL_MODES, "targets": 3},
    "most of one": {"aggregate": MOST, "modes": (1, 2, 3)},
}


@dataclass
class Trees:
    """Trees as they grow: the attributes of their inner nodes, and of their leaves."""

    rng: np.random.Generator
    modes: tuple[int, ...]
    targets: int
    nodes: list[dict[str, Any]] = field(default_factory=list)
    leaves: list[tuple[float, int]] = field(default_factory=list)

    def grow(self, depth: int) -> tuple[int, int]:
        """Whether what grew is a leaf, and its place among the leaves or nodes."""
        if depth == 0 or (depth < DEPTH and self.rng.random() < 0.15):
            self.leaves.append((self.rng.normal(), int(self.rng.integers(self.targets))))
            return 1, len(self.leaves) - 1
        node: dict[str, Any] = {"mode": int(self.rng.choice(self.modes))}
        node |= {"feature": int(self.rng.integers(FEATURES)), "split": self.rng.integers(-2, 3) / 2}
        node |= {"track": int(self.rng.integers(2))}
        place = len(self.nodes)
        self.nodes.append(node)
        node["yes"], node["no"] = self.grow(depth - 1), self.grow(depth - 1)
        return 0, place


def random_ensemble(
    rng: np.random.Generator, aggregate: int, targets: int = 1, modes: tuple[int, ...] = BOUND,
    tracks: bool = False,
) -> onnx.ModelProto:  # fmt: skip
    trees = Trees(rng, modes, targets)
    roots = [trees.grow(DEPTH)[1] for _ in range(TREES)]
    nodes = trees.nodes
    sets = [[*rng.choice(5, 3, replace=False), np.nan] for n in nodes if n["mode"] == MEMBER]
    held = {
        "nodes_modes": np.array([n["mode"] for n in nodes], np.uint8),
        "nodes_splits": np.array([n["split"] for n in nodes], np.float32),
        "leaf_weights": np.array([w for w, _ in trees.leaves], np.float32),
    }
    held |= {"membership_values": np.concatenate(sets).astype(np.float32)} if sets else {}
    lists = {"nodes_featureids": [n["feature"] for n in nodes]}
    lists |= {"nodes_missing_value_tracks_true": [n["track"] for n in nodes]} if tracks else {}
    for name, key in (("true", "yes"), ("false", "no")):
        lists[f"nodes_{name}leafs"] = [n[key][0] for n in nodes]
        lists[f"nodes_{name}nodeids"] = [n[key][1] for n in nodes]
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["Y"], domain="ai.onnx.ml", tree_roots=roots, n_targets=targets,
        aggregate_function=aggregate, leaf_targetids=[t for _, t in trees.leaves], **lists,
        **{n: numpy_helper.from_array(a) for n, a in held.items()},
    )  # fmt: skip
    x, y = (helper.make_tensor_value_info(n, 1, ["N", d]) for n, d in (("X", 4), ("Y", targets)))
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 21), ("ai.onnx.ml", 5))]
    return helper.make_model(
        helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=10
    )


def assert_ensemble(compute: Any, name: str) -> None:
    """``compute`` gives what ONNX Runtime does, of numbers on the splits and of holes as well."""
    rng = np.random.default_rng(len(name))
    model = random_ensemble(rng, **CASES[name])
    x = (rng.integers(-4, 9, (50, FEATURES)) / 2).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    (expected,) = run_model(model, {"X": x})
    (got,) = compute(model, x)
    assert len(np.unique(expected)) > 5
    np.testing.assert_allclose(got, expected, atol=1e-6)
