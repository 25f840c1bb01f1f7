"""TOML files that nobody vouches for: what is too much is refused before it is parsed."""

from __future__ import annotations

import pytest

from serde.backends.description import DESCRIPTIONS, read_backend
from serde.errors import MalformedFile
from serde.io.toml import MOST_BYTES, excess, read_toml
from testing.cpu_limit import limit_cpu

HEAD = 'name = "x"\nopset = 17\n'
LONG = {
    "arrays": "a = " + "[" * 100_000 + "]" * 100_000,
    "tables": "a = " + "{b=" * 40_000 + "1" + "}" * 40_000,
    "a dotted key": ".".join("a" * 100_000) + " = 1",
    "a header": "[" + " . ".join("a" * 50_000) + "]",
    "quoted parts": ".".join(['"a.b"'] * 40_000) + " = 1",
    "keys": "\n".join(f"k{n} = 1" for n in range(25_000)),
    "headers": "[[a]]\n" * 30_000,
    "elements": "a = [" + "1," * 100_000 + "]",
    "digits": "a = " + "9" * 200_000,
    "digits that Python does not count": HEAD.replace("17", "0x" + "f" * 5000),
    "bytes": "#" * (MOST_BYTES + 1),
    "open strings": "a = " + '"""' * 50_000,
    "backslashes": 'a = "' + "\\" * 200_001,
    "a word that is no key": "x" * 200_000 + " = 1",
    "a name of no operator": HEAD + f'[[operators]]\nnames = ["{"R" * 200_000}"]',
}


@pytest.mark.parametrize("what", LONG)
def test_too_much_is_refused_quickly(tmp_path, what):
    path = tmp_path / "b.toml"
    path.write_text(LONG[what])
    with limit_cpu(1), pytest.raises(MalformedFile) as caught:
        read_backend(path)
    assert len(str(caught.value)) < 2_000


def test_syntax_in_strings_and_comments_is_none(tmp_path):
    path = tmp_path / "b.toml"
    brackets = "[" * 100 + "a.b." * 100
    path.write_text(f"# {brackets}\na = \"{brackets}\"\nb = '''\n{brackets}'\n'''\nc.d = [[1]]\n")
    assert read_toml(path)[1]["c"] == {"d": [[1]]}


def test_descriptions_that_come_with_serde_are_far_from_the_bounds():
    for path in DESCRIPTIONS.glob("*.toml"):
        assert excess(path.read_text() * 10) is None
