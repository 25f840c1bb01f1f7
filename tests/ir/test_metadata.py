"""Documentation of inputs and outputs under their new names."""

from __future__ import annotations

import pytest

from serde.ir.metadata import DOC_OF, rename_docs


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"x": "image"}, {"image": "pixels", "y": "scores"}),
        ({"x": "y", "y": "x"}, {"y": "pixels", "x": "scores"}),
        ({"other": "z"}, {"x": "pixels", "y": "scores"}),
        ({}, {"x": "pixels", "y": "scores"}),
    ],
)
def test_documentation_goes_with_its_value(names, expected):
    metadata = {f"{DOC_OF}x": "pixels", f"{DOC_OF}y": "scores", "author": "x"}
    renamed = rename_docs(metadata, names)
    assert renamed == {"author": "x"} | {f"{DOC_OF}{n}": text for n, text in expected.items()}
