"""What a command shows while it works."""

from __future__ import annotations

import io
import sys
import threading

from serde.api import Stage
from serde.cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    for stream, quiet, shown in [
        (Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False),
    ]:  # fmt: skip
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.show_stages(quiet) as show:
            show("read")
        assert bool(stream.getvalue()) is shown


def test_bytes_that_are_written_are_counted(tmp_path):
    (tmp_path / ".m.onnx.x1.part").write_bytes(bytes(1000))
    (tmp_path / "other.onnx").write_bytes(bytes(5000))
    assert progress.count_written(tmp_path / "m.onnx") == 1000
    seen, ended = [], threading.Event()
    thread = progress.watch(tmp_path / "m.onnx", ended, lambda n: (seen.append(n), ended.set()))
    thread.join(10)
    assert seen == [1000]


def test_a_bar_shows_bytes_of_large_models(tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress.show_stages(quiet=False) as show:
        show("read")
        show(Stage("write", str(tmp_path / "m.onnx"), 1 << 30))
    assert "write …" in terminal.getvalue() and "1.0 GiB" in terminal.getvalue()
