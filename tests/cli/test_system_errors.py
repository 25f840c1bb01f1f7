"""What the system refuses to a command, and encodings of its output."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from serde.cli.commands import explain
from serde.io.named_file import NamedFile, report_path
from tests.command import show_command

pytestmark = pytest.mark.usefixtures("digits_here")

DONE, FAILED, USAGE, UNREADABLE, SYSTEM = 0, 1, 2, 3, 5

PROGRAM = Path(__file__).parents[1] / "data/pt2/buffers.pt2"
SERDE = [sys.executable, "-c", "from serde.cli.commands import main; main()"]


class TestSystemErrors:
    def test_a_folder_that_may_not_be_written_is_found_before_the_work(self, monkeypatch):
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        monkeypatch.setattr("serde.api.load", lambda *a, **k: pytest.fail("read before"))
        code, output = show_command("convert", "digits", "-o", "d.onnx")
        assert code == SYSTEM and output.startswith("serde: ") and "no permission" in output
        assert os.getcwd() in output

    def test_a_report_that_cannot_be_written_is_found_before_the_work(self):
        code, output = show_command("convert", "digits", "-o", "d.onnx", "--report", "none/r.json")
        assert code == USAGE and "does not exist" in output and not Path("d.onnx").exists()

    @pytest.mark.parametrize("arguments", [
        ("check", "shut"), ("convert", "shut.onnx", "-o", "d.onnx"), ("inspect", "shut.onnx"),
        ("compare", "digits", "shut.onnx"), ("join", "shut.onnx", "shut.onnx", "-o", "d.onnx"),
        ("run", "digits", "--data", "shut.npz"), ("verify-hash", "shut.onnx"),
        ("convert", "digits", "-o", "d.onnx", "--params", "shut.npz"),
        ("convert", "digits", "-o", "d.onnx", "--edits", "shut.json"),
        ("convert", "digits", "-o", "d.onnx", "--labels", "shut.txt"),
        ("migrate", "digits-symbol.json", "-o", "out", "--config", "shut.json"),
    ])  # fmt: skip
    @pytest.mark.skipif(
        sys.platform != "linux" or not (os.geteuid() or shutil.which("setpriv")),
        reason="who runs the tests may read all",
    )
    def test_what_may_not_be_read_is_refused_by_the_system(self, arguments):
        for suffix in (".onnx", ".npz", ".json", ".txt"):
            Path(f"shut{suffix}").write_bytes(b"x")
            Path(f"shut{suffix}").chmod(0)
        Path("shut").mkdir(0)
        drop = "-dac_override,-dac_read_search"
        plain = ["setpriv", f"--bounding-set={drop}", f"--inh-caps={drop}"]
        plain = [] if os.geteuid() else plain
        proc = subprocess.run([*plain, *SERDE, *arguments], capture_output=True, text=True)
        assert proc.returncode == SYSTEM and "Permission denied" in proc.stderr, proc.stderr
        assert proc.stderr.startswith("serde: ") and "shut" in proc.stderr

    def test_a_full_disk_names_the_file(self, monkeypatch):
        def full(*arguments, **options):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("serde.formats.onnx.writer._stream", full)
        code, output = show_command("convert", "digits", "-o", "d.onnx")
        assert (code, output) == (SYSTEM, "serde: d.onnx: No space left on device\n")
        assert not list(Path().glob(".*.part")) and not Path("d.onnx").exists()

    @pytest.mark.parametrize("arguments, right, done", [
        (("convert", "digits", "-o", "d.onnx", "-q"), SYSTEM, "the model is: d.onnx"),
        (("convert", "digits", "-o", "d.onnx", "--verify"), SYSTEM, "the model is: d.onnx"),
        (("check", "digits"), SYSTEM, "the model is checked"),
        (("compare", "digits", "digits", "--no-layers"), SYSTEM, "the models are compared"),
        (("convert", "odd-symbol.json", "-o", "o.onnx", "--input", "data=1,2"), 1,
         "nor is the model converted"),
    ])  # fmt: skip
    def test_a_disk_without_space_for_the_report_keeps_the_rest(
        self, monkeypatch, arguments, right, done
    ):
        """The model is written, found right and told of, and so is what was refused."""
        nodes = [{"op": "null", "name": "data", "inputs": []},
                 {"op": "NoSuch", "name": "odd", "inputs": [[0, 0, 0]]}]  # fmt: skip
        graph = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}
        Path("odd-symbol.json").write_text(json.dumps(graph))

        def write_text(*arguments, **options):
            raise OSError(28, "No space left on device", "r.html")

        monkeypatch.setattr("serde.api.report.data.write_text", write_text)
        code, output = show_command(*arguments, "--report", "r.html")
        assert code == right and output.count("No space left on device") == 1
        assert f"r.html: No space left on device. The report is not written; {done}" in output
        assert Path("d.onnx").exists() == ("d.onnx" in arguments)
        assert ("softmax_output" in output) == ("--verify" in arguments or "compare" in arguments
                                                or "check" in arguments)  # fmt: skip
        assert ("NoSuch" in output) == (right == 1)

    @pytest.mark.parametrize("source", [
        "digits", "small.pt2", "a.onnx", "a.zip", "a.mar", "a.tar.gz", "a.tar", "test.npz",
    ])  # fmt: skip
    def test_a_disk_that_fails_at_any_read_is_told_with_the_file(self, monkeypatch, source):
        """It is no matter of a node, whose constants a rule reads, nor left out of the result."""
        shutil.copy(PROGRAM, "small.pt2")
        show_command("convert", "digits", "-o", "a.onnx")
        with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for path in Path().glob("digits-*"):
                packed.write(path)
        shutil.copy("a.zip", "a.mar")
        for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz")):
            with tarfile.open(name, mode) as packed:
                for path in Path().glob("digits-*"):
                    packed.add(path)
        command = ["convert", source, "-o", "o.relay", "-q"]
        if source == "test.npz":
            command = ["run", "a.onnx", "--data", source, "-o", "o.npz"]
        at, reads = [0], [0]

        def fail(file, *arguments):
            reads[0] += 1
            if reads[0] == at[0]:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return io.FileIO.readinto(file, *arguments)

        monkeypatch.setattr(NamedFile, "readinto", report_path(fail))
        assert show_command(*command)[0] == DONE
        files = {place: place.read_bytes() for place in Path().glob("o.*")}
        assert reads[0] > 4
        for at[0] in range(1, reads[0] + 1):
            for place in files:
                place.unlink(missing_ok=True)
            reads[0] = 0
            code, output = show_command(*command)
            new = {place: place.read_bytes() for place in Path().glob("o.*")}
            if code == DONE:  # another reader found out first what the file is
                assert new == files
                continue
            assert code == SYSTEM and not new, output
            assert re.match(r"serde: \S*\.(json|params|pt2|onnx|zip|mar|tar|gz|npz)", output), (
                output
            )

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc takes no files")
    def test_a_folder_that_takes_no_files_is_named_without_a_temporary_name(self):
        code, output = show_command("convert", "digits", "-o", "/proc/x.onnx")
        assert code == SYSTEM and output.startswith("serde: /proc/x.onnx: ")

    def test_errors_without_a_path(self):
        assert explain(OSError("odd")) == (SYSTEM, "odd")


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp437", "utf-8"])
    @pytest.mark.parametrize("arguments", [("convert", "-h"), ("ops",), ("inspect", "."),
                                           ("convert", "digits", "-o", "d.onnx"),
                                           ("convert", "digits", "-o", "d.onnx", "--input", "Δ=1")])  # fmt: skip
    def test_no_text_fails_a_command(self, encoding, arguments):
        env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
        proc = subprocess.run([*SERDE, *arguments], capture_output=True, env=env)
        text = (proc.stdout + proc.stderr).decode(encoding)
        assert proc.returncode == (USAGE if "Δ=1" in arguments else DONE), text
        assert "internal error" not in text and "Traceback" not in text
        if arguments[-1] == "d.onnx":
            assert f"digits (mxnet) {'→' if encoding == 'utf-8' else '->'} d.onnx in " in text
