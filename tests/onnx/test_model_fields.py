"""What a model says of itself, in its fields and as metadata of a graph."""

from __future__ import annotations

import onnx
import pytest

from serde.formats.onnx.model_fields import read_fields, write_graph_fields, write_model_fields
from testing.onnx_live import model_of


def of(**fields):
    model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    for name, value in fields.items():
        setattr(model, name, value)
    return model


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"producer_name": "a tool"},
        {"producer_name": "a tool", "producer_version": "1.0"},
        {"producer_name": "tool 1.0", "producer_version": "1.0"},
        {"model_version": -3, "domain": "org.example", "doc_string": "text"},
    ],
)
def test_fields_come_back(fields):
    model, again = of(**fields), of()
    write_model_fields(again, read_fields(model))
    write_graph_fields(again.graph, read_fields(model))
    for name in ("producer_name", "producer_version", "model_version", "domain", "doc_string"):
        default = {"producer_name": "serde"}.get(name) if "producer_name" not in fields else None
        if default is None and name == "producer_version" and "producer_name" not in fields:
            continue
        assert getattr(again, name) == (default or getattr(model, name)), name


@pytest.mark.parametrize("version", ["new", "²", "--5", "9" * 19, "9" * 5000])
def test_a_version_that_is_no_number_is_none(version):
    model = of()
    write_model_fields(model, {"onnx.model_version": version, "author": "me"})
    assert model.model_version == 0
    assert [(p.key, p.value) for p in model.metadata_props] == [("author", "me")]
    onnx.checker.check_model(model)
