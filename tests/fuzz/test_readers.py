"""Damaged files end in success or a SerdeError, in bounded time and memory, leaving nothing behind.

The same slice in each run; ``conformance/fuzz.py`` goes on for as long as it is let.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.fuzz import attempts, mutations, samples

EXAMPLES = {"onnx": 500, "mxnet-symbol": 300, "relay-text": 250, "relay-json": 250}
REST = 150


@pytest.mark.parametrize("reader", attempts.READERS)
def test_the_samples_are_read(reader, tmp_path):
    for number, data in enumerate(samples.of(reader)):
        refusal = attempts.attempt(reader, data, tmp_path)
        assert refusal is None or "has no rule for" in str(refusal), (number, refusal)


@pytest.mark.parametrize("reader", attempts.READERS)
def test_damaged_files_are_converted_or_refused(reader, tmp_path):
    @settings(
        max_examples=EXAMPLES.get(reader, REST), derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.integers(0, 2**32))
    def run(seed):
        data = mutations.mutate(reader, samples.of(reader), Random(seed))
        with attempts.limited_memory():
            attempts.attempt(reader, data, tmp_path)

    run()


def test_an_attempt_tells_what_is_wrong(tmp_path, monkeypatch):
    def leaving(data, home):
        (home / "rest").touch()
        raise attempts.SerdeError

    def endless(data, home):
        while True:
            pass

    monkeypatch.setattr(attempts, "READERS", {"leaving": leaving, "endless": endless})
    monkeypatch.setattr(attempts, "SECONDS", 0.1)
    for reader, reason in (
        ("leaving", r"left behind by a failure: \['rest'\]"),
        ("endless", "takes"),
    ):
        with pytest.raises(attempts.Broken, match=reason):
            attempts.attempt(reader, b"", tmp_path)
    assert list(tmp_path.iterdir()) == []
