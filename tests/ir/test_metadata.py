"""What is said of inputs and outputs goes with them, under their new names."""

from __future__ import annotations

import pytest

from serde.ir.metadata import DENOTATIONS_OF, DOC_OF, rename_values, without_values


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"x": "image"}, {"image": "pixels", "y": "scores"}),
        ({"x": "y", "y": "x"}, {"y": "pixels", "x": "scores"}),
        ({"other": "z"}, {"x": "pixels", "y": "scores"}),
        ({}, {"x": "pixels", "y": "scores"}),
    ],
)
def test_what_is_said_of_a_value_goes_with_it(names, expected):
    kinds = (DOC_OF, DENOTATIONS_OF)
    metadata = {f"{k}{n}": text for k in kinds for n, text in (("x", "pixels"), ("y", "scores"))}
    renamed = rename_values({**metadata, "author": "x"}, names)
    assert renamed == {"author": "x"} | {
        f"{k}{n}": text for k in kinds for n, text in expected.items()
    }


def test_what_is_said_of_values_that_are_gone_goes_too():
    metadata = {f"{DOC_OF}x": "pixels", f"{DOC_OF}y": "scores", "author": "x"}
    assert without_values(metadata, ["x", "z"]) == {f"{DOC_OF}y": "scores", "author": "x"}
