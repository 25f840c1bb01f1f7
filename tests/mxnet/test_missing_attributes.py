"""Layers that lack an attribute, or have a number there that means nothing: every operator."""

from __future__ import annotations

import json

import pytest

import serde
from serde.errors import SerdeError
from testing.mxnet import cases
from testing.mxnet.rewriting import every_case

UNFORESEEN = "fails with"  # how an error that no rule foresaw is told
WORTHLESS = (None, "-7", "")  # None: the attribute is left out


def spoil_cases():
    """Each operator with each of its attributes left out, or worthless, once."""
    seen = set()
    for case in every_case():
        text = cases._symbol_json(case, 1)
        for at, node in enumerate(json.loads(text)["nodes"]):
            for name in node.get("attrs", {}):
                for value in WORTHLESS:
                    if (key := (node["op"], name, value)) not in seen:
                        seen.add(key)
                        yield case, text, at, name, value


def reasons_of(path, case):
    inputs = {f"x{i}": (x.shape, x.dtype.name) for i, x in enumerate(case.inputs)}
    try:
        return [str(problem) for problem in serde.check(path, inputs=inputs).problems]
    except SerdeError as error:
        return [str(error)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaN
def test_what_is_wrong_is_told_in_terms_of_the_layer(tmp_path):
    path, unforeseen, count = tmp_path / "m-symbol.json", [], 0
    for case, text, at, name, value in spoil_cases():
        document = json.loads(text)
        attributes = document["nodes"][at]["attrs"]
        attributes |= {name: value}
        if value is None:
            del attributes[name]
        path.write_text(json.dumps(document))
        count += 1
        unforeseen += [(name, value, r) for r in reasons_of(path, case) if UNFORESEEN in r]
    assert count > 2000
    assert not unforeseen


@pytest.mark.parametrize(
    ("op", "name"),
    [("Embedding", "input_dim"), ("Embedding", "output_dim"), ("Convolution", "num_filter"),
     ("Deconvolution", "kernel"), ("FullyConnected", "num_hidden"), ("expand_dims", "axis")],
)  # fmt: skip
def test_an_attribute_that_is_required_is_named_with_its_layer(tmp_path, op, name):
    path = tmp_path / "m-symbol.json"
    for case, text, at, dropped, value in spoil_cases():
        if value is None and dropped == name:
            document = json.loads(text)
            if document["nodes"][at]["op"] != op:
                continue
            layer = document["nodes"][at]["name"]
            del document["nodes"][at]["attrs"][name]
            path.write_text(json.dumps(document))
            (reason,) = reasons_of(path, case)
            assert f"{op} ×1 ('{layer}'): attribute '{name}' is required. " in reason
            return
    raise AssertionError(f"no case of {op}")
