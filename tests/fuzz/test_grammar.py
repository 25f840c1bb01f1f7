"""Models of counts, repetition and nesting end soon; a slice of ``conformance/campaign.py``."""

from __future__ import annotations

from random import Random

import pytest

from conformance import campaign
from serde.errors import SerdeError
from testing.fuzz import attempts, grammar, mutations, parsing, samples

CONVERTED, PARSED = 25, 300  # inputs of each reader


def run(name, kind, first, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "BATCH", inputs)
    count = campaign.Count()
    with attempts.limited_memory(campaign.MEMORY):
        campaign.run_batch(name, kind, first, count, tmp_path)
    return count


@pytest.mark.parametrize("reader", grammar.MAKERS)
def test_grammars_make_models_that_end_soon(reader, tmp_path, monkeypatch):
    kind = campaign.kinds(tmp_path)[f"convert {reader}"]
    count = run(f"convert {reader}", kind, 0, CONVERTED, tmp_path, monkeypatch)
    assert count.inputs == CONVERTED and count.findings == 0, sorted(tmp_path.iterdir())
    assert count.succeeded > CONVERTED // 10  # they are whole


@pytest.mark.parametrize("reader", parsing.PARSERS)
def test_parsers_end_soon(reader, tmp_path, monkeypatch):
    for data in samples.of(reader):
        try:
            parsing.parse(reader, data)
        except SerdeError as error:
            assert reader == "onnx" and "external data" in str(error)
    kind = campaign.kinds(tmp_path)[f"parse {reader}"]
    count = run(f"parse {reader}", kind, 0, PARSED, tmp_path, monkeypatch)
    assert count.inputs == PARSED and count.findings == 0, sorted(tmp_path.iterdir())


def test_a_seed_makes_the_same_input_again():
    for reader in grammar.MAKERS:
        assert grammar.make(reader, Random(7)) == grammar.make(reader, Random(7))
    seeds = samples.of("onnx")
    assert mutations.mutate("onnx", seeds, Random(7)) == mutations.mutate("onnx", seeds, Random(7))


def test_what_is_out_of_proportion_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(attempts, "LEAST_SECONDS", 0.0)

    def work(data):
        return [sum(range(1000)) for _ in range(1000)] and None

    def fail(data):
        raise KeyError("raw")

    for name, kind in (("slow", work), ("raw", fail)):
        folder = tmp_path / name
        folder.mkdir()
        entry = (lambda random: b"x", kind, 5000)
        assert run(name, entry, 0, 3, folder, monkeypatch).findings == 3
        assert any(p.suffix == ".txt" for p in folder.iterdir())
