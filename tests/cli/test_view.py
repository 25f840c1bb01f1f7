"""``serde view``: a page is written, and opened unless it is not wanted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from testing.onnx_live import DIGITS


@pytest.fixture
def opened(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    urls = []
    monkeypatch.setattr("webbrowser.open", lambda url: urls.append(url) or True)
    return urls


def view(*arguments):
    return CliRunner().invoke(main, ["view", str(DIGITS), *arguments])


def test_it_opens_a_page_in_a_folder_of_its_own(opened, tmp_path):
    paths = [Path(view().stdout.strip()) for _ in range(2)]
    assert opened == [p.as_uri() for p in paths] and paths[0] != paths[1]
    assert all(p.name == "digits.html" and "conv1_weight" in p.read_text() for p in paths)


def test_it_prints_its_path_only(opened, tmp_path):
    result = view("--no-browser", "-o", "page.html")
    assert (result.exit_code, result.stdout, opened) == (0, f"{tmp_path / 'page.html'}\n", [])
    assert (tmp_path / "page.html").exists()


def test_without_a_browser_it_says_so(opened, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    result = view()
    assert result.exit_code == 0 and "no browser was found" in result.stderr


@pytest.mark.parametrize(
    ("target", "message"), [("page.txt", "is an .html file"), ("no/p.html", "no")]
)
def test_places_that_cannot_be_written_are_refused(opened, target, message):
    result = view("--no-browser", "-o", target)
    assert result.exit_code != 0 and message in result.output


def test_a_file_nobody_vouches_for_is_read_in_a_process_of_its_own(tmp_path):
    command = [sys.executable, "-m", "serde", "view", "--isolate", "--no-browser"]
    (tmp_path / "bad.onnx").write_bytes(b"\x08\xff")
    for source, code in ((DIGITS, 0), (tmp_path / "bad.onnx", 3)):
        page = tmp_path / f"{code}.html"
        done = subprocess.run([*command, source, "-o", page], capture_output=True, text=True)
        assert (done.returncode, page.exists()) == (code, code == 0), done.stderr
