"""What a format declares of itself."""

from pathlib import Path

import pytest

from serde.ir.graph import EMPTY
from serde.plugins import format_names, get_format
from serde.plugins.declarations import Format
from serde.plugins.options import HUB, ReadOptions, WriteOptions, list_options, option
from serde.rewrite.rules import RuleTable

TABLE = RuleTable("toy → ir")


class ToyWriteOptions(WriteOptions):
    """Of a format of this test."""

    decimals: int | None = option("Digits.", kind="integer")


def make_format(**fields):
    def fail(*arguments, **options):
        raise AssertionError

    plain = {"name": "toy", "suffixes": (".toy",), "matches": lambda path: False,
             "decode": fail, "to_ir": fail}  # fmt: skip
    return Format(**{**plain, **fields})


def test_its_own_options_are_those_beside_the_hubs():
    assert make_format().own_options() == frozenset()
    toy = make_format(write_options=ToyWriteOptions)
    assert toy.own_options() == {"decimals"}
    assert not toy.own_options() & HUB and toy.read_options is ReadOptions


def test_tables_are_imported_where_they_are_places():
    toy = make_format(tables=(TABLE,))
    assert toy.rule_tables() == (TABLE,)
    placed = Format.in_package(
        "serde.formats.relay", name="relay", suffixes=(), matches=lambda p: 0
    )
    assert [t.name for t in placed.rule_tables()] == ["relay → ir", "ir → relay"]


@pytest.mark.parametrize("name", format_names())
def test_what_sources_are_read_with_are_options_of_reading(name):
    fmt = get_format(name)
    known = {o for other in format_names() for o in list_options(get_format(other).read_options)}
    known |= {*HUB}
    assert set(fmt.reading({})) <= known
    assert make_format().reading({}) == EMPTY


def test_matching_tells_nothing_of_other_files(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("nothing")
    for name in format_names():
        assert not get_format(name).matches(Path(path))
