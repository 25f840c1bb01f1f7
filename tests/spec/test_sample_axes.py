"""The axes along which operators work index by index: which operators have some."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from serde.ir.graph import Node, Value
from serde.spec import schema
from serde.spec.sample_axes import find_sample_axes, has_sample_axes
from tests.spec.sample_axes.cases import ML, constant

# Operators that have no axis in general: they compute sizes, draw, or look at all elements.
NO_AXIS = frozenset(
    "BlackmanWindow Constant ConstantOfShape DynamicQuantizeLinear EyeLike HammingWindow "
    "HannWindow ImageDecoder MaxUnpool MelWeightMatrix NonMaxSuppression NonZero RandomNormal "
    "RandomUniform Range SequenceEmpty StringNormalizer StringSplit Unique".split()
)
# Operators that are followed otherwise: by the order of elements, or by their bodies.
FOLLOWED = frozenset("Flatten If Loop Reshape Scan SequenceMap Squeeze Unsqueeze".split())


def test_every_operator_is_in_the_table_or_has_no_axis():
    missing = {op for op in schema.names() if not has_sample_axes(op)}
    assert missing == NO_AXIS | FOLLOWED
    ml = {s.name for s in onnx.defs.get_all_schemas() if s.domain == ML and not s.deprecated}
    assert {op for op in ml if not has_sample_axes(f"{ML}:{op}")} == {"CastMap", "DictVectorizer"}


@pytest.mark.parametrize("op", ["NonZero", "com.acme:Foo"])
def test_an_unknown_operator_has_no_axes(op):
    domain, _, name = op.rpartition(":")
    assert (
        find_sample_axes(Node(name, (constant("x", np.ones(3)),), (Value("y"),), domain=domain))
        == ()
    )
