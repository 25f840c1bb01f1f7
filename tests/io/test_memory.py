"""How much memory processes may take that run models."""

from __future__ import annotations

import sys

import pytest

from serde.errors import UsageError
from serde.io import memory
from serde.io.memory import LEAST, MOST, find_free_memory, find_memory_limit


def test_the_environment_tells(monkeypatch):
    monkeypatch.setenv(MOST, "300")
    assert find_memory_limit() == 300
    for word in ("0", "-1", "2g", "1e3"):
        monkeypatch.setenv(MOST, word)
        with pytest.raises(UsageError, match=f"{MOST} is '{word}': set it to a number of MiB"):
            find_memory_limit()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what is free")
def test_else_it_is_what_is_free(monkeypatch, tmp_path):
    monkeypatch.delenv(MOST, raising=False)
    free = find_free_memory()
    assert free is not None and find_memory_limit() == pytest.approx(max(free, LEAST), rel=0.2)
    for text, limit in ((f"{5 << 20}\n", 5), ("max\n", free)):  # of a group of processes
        (tmp_path / "limit").write_text(text)
        monkeypatch.setattr(memory, "GROUPS", (str(tmp_path / "limit"), str(tmp_path / "none")))
        assert find_free_memory() == pytest.approx(limit, rel=0.2)
    monkeypatch.setattr(memory, "find_free_memory", lambda: 5)
    assert find_memory_limit() == LEAST
    monkeypatch.setattr(memory, "find_free_memory", lambda: None)
    assert find_memory_limit() is None
