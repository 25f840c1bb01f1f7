"""What type checkers and editors are told of the public names."""

from __future__ import annotations

from pathlib import Path

import serde
from serde.cli.stub import make_stub

STUB = Path(serde.__file__).with_name("__init__.pyi")


def test_it_is_what_the_code_says():
    """Run ``python -m serde.cli.stub serde/__init__.pyi`` after a change of options."""
    assert STUB.read_text() == make_stub()


def test_functions_show_their_options():
    text = STUB.read_text()
    for name, option in (("load", "static"), ("save", "profile"), ("partition", "min_nodes")):
        body = text.partition(f"def {name}(")[2].partition(") ->")[0]
        assert f"    {option}: " in body and "    **options: Any," in body
