"""Documentation of inputs and outputs follows their names."""

from serde.ir.metadata import DOC_OF, rename_docs


def test_documentation_has_the_new_names():
    metadata = {f"{DOC_OF}x": "an image", f"{DOC_OF}y": "scores", "author": "x"}
    renamed = rename_docs(metadata, {"x": "y", "y": "x"})
    assert renamed == {f"{DOC_OF}y": "an image", f"{DOC_OF}x": "scores", "author": "x"}


def test_metadata_of_other_names_stay_the_same_object():
    metadata = {"author": "x"}
    assert rename_docs(metadata, {"x": "y"}) is metadata
