"""Models to ONNX and back; conformance/round_trips.py takes all of them."""

from __future__ import annotations

import pytest

from serde.formats.mxnet.legalize import mxnet_target
from serde.formats.mxnet.releases import get_release
from serde.spec import schema
from serde.version_converter.adapters import downgrades
from testing.light_models import model_path
from testing.mxnet.round_trips import from_onnx, there_and_back
from testing.mxnet_live import live_mxnet
from testing.networks import VISION, smallest

TOLERANCE = 1e-4
# What MXNet's own importer knows and no graph of ours has: a value, and two names never in ONNX.
GONE = {"Constant", "FC", "SpatialBN"}


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "lstm_states", "bert_interleaved_where"])
def test_there_and_back_and_there_again(name, tmp_path):
    """Numbers, and the names of inputs, outputs and weights."""
    live_mxnet()
    trip = there_and_back(name, tmp_path, smallest(name) if name in VISION else None)
    assert max(trip.first, trip.second, trip.third) < TOLERANCE
    assert trip.renamed == []


def test_a_light_model_runs_in_mxnet(tmp_path):
    live_mxnet()
    nodes, error = from_onnx(model_path("light_densenet121"), tmp_path)
    assert nodes > 500 and error < TOLERANCE


def test_every_operator_of_mxnets_own_importer_is_there():
    mx = live_mxnet()
    assert mx
    from mxnet.contrib.onnx.onnx2mx._import_helper import _convert_map

    assert len(_convert_map) > 90
    decomposed = {
        op for v, rules in downgrades.items() for op in rules.rules if schema.first_version(op) == v
    }
    target = mxnet_target(get_release(None))
    written = target.supports.keys() | target.legalizations.rules.keys() | decomposed
    assert _convert_map.keys() - written - GONE == set()
