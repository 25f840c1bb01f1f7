"""The ``serde`` command: every command and option, its messages and exit codes."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.cli.progress import show_stages
from testing.onnx_live import model_of

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
DONE, FAILED, USAGE, UNREADABLE, NOT_COMPARED = 0, 1, 2, 3, 4
INTERRUPTED = 130
SERDE = [sys.executable, "-m", "serde"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder of its own for each test, with the example in it."""
    for name in ("digits-symbol.json", "digits-0010.params", "test.npz"):
        shutil.copy(DIGITS / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def serde(*arguments):
    """Run the command here; return its exit code, output and errors."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert "Traceback" not in result.output
    return result.exit_code, result.stdout, result.stderr


def list_files():
    return sorted(p.name for p in Path().iterdir() if not p.name.startswith(("digits", "test")))


def unknown_operators():
    """A symbol of three unknown operators in two groups, a known one that sets an unsupported
    attribute, and one that reads a failure."""

    def node(op, name, attrs=None, reads=0):
        return {"op": op, "name": name, "inputs": [[reads, 0, 0]], "attrs": attrs or {}}

    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        node("NoSuchOp", "n1", {"a": "1"}),
        node("AlsoNone", "n2", reads=1),
        node("NeitherThis", "n3", {"k": "x"}),
        node("LRN", "lrn", {"nsize": "5", "new_attribute": "7"}),
        node("relu", "r", reads=3),
    ]
    heads = [[i, 0, 0] for i in (2, 4, 5)]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": heads,
                       "attrs": {"mxnet_version": ["int", 10901]}})  # fmt: skip
    Path("odd-symbol.json").write_text(text)
    return "odd-symbol.json"


class TestConvert:
    @pytest.mark.parametrize("source", ["digits-symbol.json", "digits", "."])
    def test_a_file_a_prefix_and_a_folder(self, source):
        code, out, err = serde("convert", source, "-o", "d.onnx")
        assert (code, err, list_files()) == (DONE, "", ["d.onnx"])
        assert out.startswith(f"{source} (mxnet) → d.onnx in ")
        assert "input  data: float32 (N, 1, H, W)" in out
        assert "output softmax_output: float32 (N, 10)" in out
        assert "nodes  12: Relu ×3, Conv ×2" in out and "weights 21,722 numbers" in out

    def test_an_archive(self):
        with tarfile.open("m.tar.gz", "w:gz") as tar:
            tar.add("digits-symbol.json")
            tar.add("digits-0010.params")
        for name in Path().glob("digits*"):
            name.unlink()
        assert serde("convert", "m.tar.gz", "-o", "d.onnx")[0] == DONE

    def test_opset_and_ir_version(self):
        assert serde("convert", ".", "-o", "d.onnx", "--opset", 11, "--ir-version", 6)[0] == DONE
        model = onnx.load("d.onnx")
        assert (model.opset_import[0].version, model.ir_version) == (11, 6)

    def test_the_defaults_are_opset_17_and_ir_version_8(self):
        serde("convert", ".", "-o", "d.onnx")
        model = onnx.load("d.onnx")
        assert (model.opset_import[0].version, model.ir_version) == (17, 8)

    def test_inputs_outputs_and_new_names(self):
        code, out, _ = serde(
            "convert", ".", "-o", "d.onnx", "--input", "data=batch,1,8,8:float32",
            "--outputs", "fc1,softmax", "--rename", "data=pixels", "--rename", "softmax_output=p",
        )  # fmt: skip
        assert code == DONE
        assert "input  pixels: float32 (batch, 1, 8, 8)" in out
        assert "output fc1_output: float32 (batch, 32)" in out and "output p: float32" in out

    def test_a_size_instead_of_a_name(self):
        code, out, _ = serde(
            "convert", ".", "-o", "d.onnx", "--static", "N=2", "--static", "H=8", "--static", "W=8"
        )
        assert code == DONE and "data: float32 (2, 1, 8, 8)" in out

    def test_a_batch_and_a_front_cut_off(self):
        serde("convert", ".", "-o", "d.onnx", "--input", "data=1,1,8,8")
        code, out, _ = serde("convert", "d.onnx", "-o", "e.onnx", "--rebatch", "7")
        assert code == DONE and "data: float32 (7, 1, 8, 8)" in out
        code, out, _ = serde("convert", "d.onnx", "-o", "e.onnx", "--rebatch", "N")
        assert code == DONE and "data: float32 (N, 1, 8, 8)" in out
        more = "--rebatch", "data=0:N", "--rebatch", "softmax_output=0"
        code, out, _ = serde("convert", "d.onnx", "-o", "e.onnx", *more)
        assert code == DONE and "data: float32 (N, 1, 8, 8)" in out
        code, _, err = serde("convert", "d.onnx", "-o", "e.onnx", "--rebatch", "data=x")
        assert code == USAGE and "--rebatch 'data=x' is not N, NAME=AXIS:N or NAME=none" in err
        code, out, _ = serde("convert", "d.onnx", "-o", "e.onnx", "--cut-inputs", "flatten_output")
        assert code == DONE and "input  flatten_output: float32 (1, 512)" in out

    def test_a_profile(self):
        code, _, err = serde("convert", ".", "-o", "d.onnx", "--profile", "npu-static")
        assert code == USAGE and "static shapes only" in err and list_files() == []
        code, *_ = serde("convert", ".", "-o", "d.onnx", "--profile", "npu-static",
                         "--input", "data=1,1,8,8")  # fmt: skip
        assert code == DONE and onnx.load("d.onnx").opset_import[0].version == 13
        code, _, err = serde("convert", ".", "-o", "d.onnx", "--profile", "abacus")
        assert code == USAGE and "'abacus' is not one of coreml, generic, mnn, ncnn," in err

    def test_parameters_elsewhere_and_an_epoch(self):
        os.rename("digits-0010.params", "elsewhere.bin")
        assert serde("convert", "digits-symbol.json", "-o", "d.onnx")[0] == UNREADABLE
        code, *_ = serde(
            "convert", "digits-symbol.json", "-o", "d.onnx", "--params", "elsewhere.bin"
        )
        assert code == DONE
        shutil.copy("elsewhere.bin", "digits-0003.params")
        assert serde("convert", "digits", "-o", "d.onnx", "--epoch", 3)[0] == DONE
        code, _, err = serde("convert", "digits", "-o", "d.onnx", "--epoch", 4)
        assert code == USAGE and "no parameters of epoch 4" in err

    def test_arrays_that_belong_to_nothing(self):
        from serde.formats.mxnet.io.params import read_params

        held = {n: t.load() for n, t in read_params("digits-0010.params").by_name().items()}
        np.savez("extra.npz", **held, stray=np.zeros(3, np.float32))
        command = ("convert", "digits-symbol.json", "-o", "d.onnx", "--params", "extra.npz")
        for more in ((), ("--ignore-extra",)):
            code, out, err = serde(*command, *more)
            assert code == DONE and "'stray' left out" in out + err

    def test_an_array_that_was_likely_meant_for_a_variable(self):
        from serde.formats.mxnet.io.params import read_params

        held = {n: t.load() for n, t in read_params("digits-0010.params").by_name().items()}
        name = next(n for n in held if n.endswith("weight"))
        np.savez("misspelt.npz", **{n if n != name else f"{n}s": a for n, a in held.items()})
        code, _, err = serde(
            "convert", "digits-symbol.json", "-o", "d.onnx", "--params", "misspelt.npz"
        )
        assert code == UNREADABLE and f"{name}s" in err and "--ignore-extra" in err

    @pytest.mark.parametrize(
        ("mode", "files"),
        [("auto", ["d.onnx"]), ("never", ["d.onnx"]), ("always", ["d.onnx", "d.onnx.data"]),
         ("reference", ["d.onnx"])],
    )  # fmt: skip
    def test_external_data(self, mode, files):
        assert serde("convert", ".", "-o", "d.onnx", "--external-data", mode)[0] == DONE
        assert list_files() == files

    def test_formats_by_name(self):
        shutil.copy("digits-symbol.json", "strange.name")
        code, *_ = serde("convert", "strange.name", "-o", "d.model", "--from", "mxnet",
                         "--to", "onnx", "--params", "digits-0010.params")  # fmt: skip
        assert code == DONE and onnx.load("d.model").graph.node
        for option in ("--from", "--to"):
            code, _, err = serde("convert", ".", "-o", "d.onnx", option, "caffe")
            assert code == USAGE and "'caffe' is not one of" in err

    def test_one_opset_to_another(self):
        onnx.save(
            model_of("g (float[N,3] x) => (float[N,3] y) { y = Softmax(x) }", 11, 6), "a.onnx"
        )
        code, out, _ = serde("convert", "a.onnx", "-o", "b.onnx", "--opset", 13)
        assert code == DONE and out.startswith("a.onnx (onnx) → b.onnx")
        assert onnx.load("b.onnx").opset_import[0].version == 13

    def test_hard_links_where_paths_are_strict(self):
        serde("convert", ".", "-o", "d.onnx", "--external-data", "always")
        os.link("d.onnx.data", "other")
        assert serde("convert", "d.onnx", "-o", "e.onnx")[0] == DONE
        code, _, err = serde("convert", "d.onnx", "-o", "e.onnx", "--strict-paths")
        assert code == UNREADABLE and "a hard link" in err
        code, _, err = serde("convert", "digits", "-o", "e.onnx", "--strict-paths")
        assert code == USAGE and "mxnet takes no option --strict-paths here" in err

    def test_a_report(self):
        serde("convert", ".", "-o", "d.onnx", "--report", "r.json", "--input", "data=N,1,8,8")
        report = json.loads(Path("r.json").read_text())
        assert report["ok"] and report["files"] == ["d.onnx"] and report["source_format"] == "mxnet"
        assert report["operators"]["Conv"] == 2 and report["parameters"] == 21722
        assert report["inputs"] == [{"name": "data", "dtype": "float32", "shape": "(N, 1, 8, 8)"}]
        assert set(report["seconds"]) == {"read", "convert", "write"}

    def test_quiet(self):
        assert serde("convert", ".", "-o", "d.onnx", "--quiet") == (DONE, "", "")
        code, out, err = serde("convert", "none", "-o", "d.onnx", "-q")
        assert (code, out) == (UNREADABLE, "") and err.startswith("serde: none: there is no such")

    def test_what_was_there_stays_where_it_fails(self):
        Path("d.onnx").write_bytes(b"\x08\x08before")
        code, *_ = serde("convert", unknown_operators(), "-o", "d.onnx", "--input", "data=1,2")
        assert code == FAILED and Path("d.onnx").read_bytes() == b"\x08\x08before"
        assert list_files() == ["d.onnx", "odd-symbol.json"]


class TestVerify:
    GIVEN = ("--data", "test.npz", "--expected", "test.npz")

    def test_numbers_that_agree(self):
        code, out, _ = serde("convert", ".", "-o", "d.onnx", *self.GIVEN)
        assert code == DONE
        assert "verification against the outputs given, the inputs given:" in out
        assert "softmax_output float32[360, 10]: max_abs " in out and out.endswith(": pass\n")

    def test_numbers_that_do_not(self):
        held = dict(np.load("test.npz", allow_pickle=False))
        np.savez("wrong.npz", **{**held, "expected": held["expected"] + np.float32(0.1)})
        wrong = ("--data", "test.npz", "--expected", "wrong.npz")
        code, out, err = serde("convert", ".", "-o", "d.onnx", *wrong, "--report", "r.json")
        assert (code, err) == (FAILED, "") and "FAIL (off by 0.1" in out
        report = json.loads(Path("r.json").read_text())
        assert not report["ok"] and not report["verification"]["outputs"][0]["passed"]
        code, out, err = serde("convert", ".", "-o", "d.onnx", *wrong, "--quiet")
        assert (code, out) == (FAILED, "") and "FAIL (off by 0.1" in err

    def test_an_onnx_source_is_run(self):
        onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8), "a.onnx")
        code, out, _ = serde("convert", "a.onnx", "-o", "b.onnx", "--opset", 13, "--verify")
        assert code == DONE and "verification against onnx, random inputs, seed 0:" in out

    def test_a_source_that_cannot_be_run_is_said_so(self, monkeypatch):
        from serde.bridges import mxnet
        from serde.errors import MissingDependency

        def absent():
            raise MissingDependency("MXNet is not here")

        monkeypatch.setattr(mxnet, "import_mxnet", absent)
        ask = ("convert", ".", "-o", "d.onnx", "--input", "data=N,1,8,8")
        for more, code in ((("--verify",), DONE), (("--verify-strict",), NOT_COMPARED),
                           (("--verify-strict", "--quiet"), NOT_COMPARED)):  # fmt: skip
            status, out, err = serde(*ask, *more)
            assert status == code and "not compared" not in out
            assert "not compared: the source could not be run. MXNet is not here" in err
            assert "--expected out.npz with --data in.npz" in err

    def test_strict_verification_that_compares(self):
        onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8), "a.onnx")
        code, out, err = serde("convert", "a.onnx", "-o", "b.onnx", "--verify-strict")
        assert (code, err) == (DONE, "") and out.endswith(": pass\n")
        assert "  inputs: normal, negative, zero, equal, special, large, infinite\n" in out
        assert "  result run by default, without ONNX Runtime's optimiser\n" in out

    REJECTED = ("g (float[N,L] x) => (float[a,b] y) <int64[2] s = {3, 5}> "
                "{ z = Reshape(x, s)\n y = MatMul(z, x) }")  # fmt: skip

    @pytest.mark.parametrize("data", [(), ("--data", "in.npz")])
    def test_a_source_that_fails_to_run_is_not_compared(self, data):
        onnx.save(model_of(self.REJECTED, 17, 8), "a.onnx")
        np.savez("in.npz", x=np.zeros((2, 7), np.float32))
        for more, code in (("--verify", DONE), ("--verify-strict", NOT_COMPARED)):
            status, out, err = serde("convert", "a.onnx", "-o", "b.onnx", more, *data)
            assert status == code and "FAIL" not in out + err
            assert "not compared: the source failed to run on the inputs " in err
            assert ("--input x=DIMS" in err) == (not data)

    def test_a_result_without_a_runtime_is_not_compared(self, monkeypatch):
        from serde.errors import MissingDependency
        from serde.verification import compare_results

        def absent(*arguments, **options):
            raise MissingDependency("TVM is not here")

        onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8), "a.onnx")
        monkeypatch.setattr(compare_results, "prepare", absent)
        for more, code in (("--verify", DONE), ("--verify-strict", NOT_COMPARED)):
            status, _, err = serde("convert", "a.onnx", "-o", "b.onnx", more)
            assert status == code and "the result could not be run. TVM is not here" in err

    def test_a_result_that_fails_to_run_is_wrong(self, monkeypatch):
        from serde.errors import SerdeError
        from serde.verification import compare_results

        def fail(*arguments, **options):
            raise SerdeError("no")

        onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8), "a.onnx")
        monkeypatch.setattr(compare_results, "prepare", fail)
        code, out, _ = serde("convert", "a.onnx", "-o", "b.onnx", "--verify")
        assert code == FAILED and "the result failed to run, its source did not" in out

    def test_a_tolerance_decides(self):
        right = np.load("test.npz")["data"][:4]
        serde("convert", ".", "-o", "d.onnx", "--input", "data=N,1,8,8")
        scores = __import__("onnxruntime").InferenceSession("d.onnx").run(None, {"data": right})[0]
        np.savez("in.npz", data=right)
        np.savez("out.npz", y=scores * 1.01)
        ask = ("convert", ".", "-o", "d.onnx", "--data", "in.npz", "--expected", "out.npz")
        assert serde(*ask)[0] == FAILED
        assert serde(*ask, "--rtol", 0.02)[0] == DONE
        assert serde(*ask, "--rtol", 0.001)[0] == FAILED
        assert serde(*ask, "--rtol", -1)[0] == USAGE

    def test_data_that_are_none(self):
        Path("bad.npz").write_bytes(b"nothing")
        code, _, err = serde("convert", ".", "-o", "d.onnx", "--verify", "--data", "bad.npz")
        assert code == UNREADABLE and "bad.npz: not an .npz file" in err
        code, _, err = serde("convert", ".", "-o", "d.onnx", "--verify", "--data", "absent.npz")
        assert code == UNREADABLE and "absent.npz" in err


class TestCheck:
    def test_what_stands_in_the_way_all_at_once(self):
        code, out, err = serde(
            "check", unknown_operators(), "--to", "onnx", "--input", "data=1,4,2,2"
        )
        assert (code, err) == (FAILED, "")
        title, *groups = out.splitlines()
        assert title == "odd-symbol.json: 4 node(s) cannot be converted to onnx:"
        assert sorted(groups) == sorted([
            "  NoSuchOp ×1 ('n1'): mxnet → ir has no rule for NoSuchOp. Attributes: a=1",
            "  AlsoNone ×1 ('n2'): mxnet → ir has no rule for AlsoNone",
            "  NeitherThis ×1 ('n3'): mxnet → ir has no rule for NeitherThis. Attributes: k=x",
            "  LRN ×1 ('lrn'): unknown attribute new_attribute; the operator takes alpha, beta, knorm, "
            "nsize. Attributes: new_attribute=7, nsize=5",
            "  What has no rule can be given one (rules= in Python), be kept (--custom-domain or "
            "--keep-domain), or be cut off (--outputs).",
        ])  # fmt: skip
        assert list_files() == ["odd-symbol.json"]

    def test_the_same_as_json(self):
        code, out, _ = serde("check", unknown_operators(), "--json", "--input", "data=1,4,2,2")
        problems = {p["op"]: p for p in json.loads(out)["problems"]}
        assert code == FAILED and len(problems) == 4
        assert problems["LRN"] == {
            "op": "LRN", "attrs": {"new_attribute": "7", "nsize": "5"}, "names": ["lrn"],
            "reason": "unknown attribute new_attribute; the operator takes alpha, beta, knorm, nsize",
            "stage": "mxnet → ir",
        }  # fmt: skip

    def test_a_model_that_converts(self):
        code, out, _ = serde("check", ".")
        assert code == DONE and out.startswith(".: everything converts to onnx\n")
        assert "Conv ×2" in out and list_files() == []

    def test_an_opset_that_cannot_say_it(self):
        onnx.save(model_of("g (string[N] x) => (string[N] y) { y = StringConcat(x, x) }"), "a.onnx")
        code, out, _ = serde("check", "a.onnx", "--opset", 19)
        assert (
            code == FAILED and "StringConcat ×1 ('y'): " in out and "opset 20 is the lowest" in out
        )
        assert serde("check", "a.onnx", "--opset", 20)[0] == DONE

    def test_a_source_that_cannot_be_read(self):
        assert serde("check", "nothing")[0] == UNREADABLE


class TestInspect:
    def test_what_a_model_holds(self):
        code, out, _ = serde("inspect", "digits")
        assert code == DONE
        assert out.startswith("digits: mxnet 1.9.1, 13 nodes\n  input  data:")
        assert "Convolution ×2" in out and "softmax_label" in out

    def test_every_value(self):
        code, out, _ = serde("inspect", ".", "--values", "--input", "data=1,1,8,8")
        assert (
            code == DONE and "  Convolution: %conv1_output: float32[1,16,8,8]" in out.splitlines()
        )

    def test_json(self):
        code, out, _ = serde("inspect", ".", "--json")
        assert code == DONE and json.loads(out)["operators"]["Convolution"] == 2

    def test_an_onnx_model(self):
        serde("convert", ".", "-o", "d.onnx")
        code, out, _ = serde("inspect", "d.onnx")
        assert code == DONE and out.startswith("d.onnx: onnx opset 17, 12 nodes\n")

    def test_nothing_is_written(self):
        serde("inspect", ".")
        assert list_files() == []


class TestOthers:
    def test_repair(self):
        model = model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8)
        model.graph.node[0].op_type = "RELU"
        onnx.save(model, "a.onnx")
        code, out, _ = serde("repair", "a.onnx", "-o", "b.onnx")
        assert code == DONE and "operator RELU is spelled Relu" in out
        assert out.endswith("a.onnx → b.onnx: 1 change(s)\n")
        onnx.checker.check_model("b.onnx")
        code, _, err = serde("repair", "digits", "-o", "b.onnx")
        assert code == USAGE and "mxnet files cannot be repaired" in err

    def test_operators(self):
        code, out, _ = serde("ops")
        assert code == DONE and "mxnet → ir: " in out and "\n  Convolution" in out
        code, out, _ = serde("ops", "--markdown", "--format", "mxnet")
        assert code == DONE and out.startswith("# Operators\n") and "| `Convolution` |" in out
        assert serde("ops", "--format", "caffe")[0] == USAGE

    def test_formats(self):
        code, out, _ = serde("formats")
        assert code == DONE
        assert "onnx: .onnx; read and written" in out.splitlines()
        assert any(line.startswith("mxnet: -symbol.json; read") for line in out.splitlines())
        assert "bridge mxnet: live objects, read as mxnet" in out.splitlines()

    @pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("convert", "-h")])
    def test_help(self, arguments):
        code, out, err = serde(*arguments)
        assert "Usage:" in out + err and code == (DONE if arguments else USAGE)

    def test_version(self):
        import serde as package

        assert serde("--version") == (DONE, f"serde, version {package.__version__}\n", "")


class TestHash:
    def test_weights_are_those_a_model_was_written_with(self):
        serde(
            "convert", ".", "-o", "d.onnx", "--hash", "--external-data", "always", "--report", "r"
        )
        code, out, _ = serde("verify-hash", "d.onnx")
        assert code == DONE and out.startswith("d.onnx: the weights have SHA-256 ")
        digest = out.split("SHA-256 ")[1][:64]
        kept = {p.key: p.value for p in onnx.load("d.onnx").metadata_props}
        assert kept["serde.weights.sha256"] == digest and digest in Path("r").read_text()

    def test_an_exchanged_sidecar_is_found(self):
        serde("convert", ".", "-o", "d.onnx", "--hash", "--external-data", "always")
        data = bytearray(Path("d.onnx.data").read_bytes())
        data[5000] ^= 1
        Path("d.onnx.data").write_bytes(data)
        code, _, err = serde("verify-hash", "d.onnx")
        assert code == UNREADABLE and "its weights are not those it was written with" in err

    def test_a_model_without_one(self):
        serde("convert", ".", "-o", "d.onnx")
        code, _, err = serde("verify-hash", "d.onnx")
        assert code == USAGE and "holds no hash of its weights" in err


class TestIsolation:
    """In a process of its own; what it prints goes where this process prints."""

    def run(self, *arguments):
        return subprocess.run([*SERDE, *arguments], capture_output=True, text=True)

    def test_it_does_what_it_does_otherwise(self):
        proc = self.run("convert", ".", "-o", "d.onnx", "--isolate")
        assert (proc.returncode, proc.stderr) == (DONE, "") and "→ d.onnx" in proc.stdout
        assert list_files() == ["d.onnx"]

    def test_exit_codes_come_through(self):
        assert self.run("inspect", "nothing", "--isolate").returncode == UNREADABLE
        assert self.run("check", unknown_operators(), "--isolate", "--input", "data=1,4,2,2"
                        ).returncode == FAILED  # fmt: skip

    @pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
    def test_memory_is_limited(self):
        """Sparse tensors of one number each claim 2 GiB of zeros; the libraries alone fit."""
        model = model_of("g (float[1] x) => (float[1] y) { y = Relu(x) }")
        indices = onnx.numpy_helper.from_array(np.zeros(1, np.int64))
        for i in range(32):
            values = onnx.numpy_helper.from_array(np.ones(1, np.float32), f"s{i}")
            model.graph.sparse_initializer.add(values=values, indices=indices, dims=[1 << 24])
        onnx.save(model, "sparse.onnx")
        limits = ("--isolate", "--max-memory", "900", "--max-growth", "4096")
        proc = self.run("convert", "sparse.onnx", "-o", "d.onnx", *limits)
        assert proc.returncode == FAILED and "more memory than there is" in proc.stderr
        assert not Path("d.onnx").exists() and "Traceback" not in proc.stderr

    def test_time_is_limited(self):
        proc = self.run("convert", ".", "-o", "d.onnx", "--isolate", "--max-seconds", "0")
        assert proc.returncode in (USAGE, UNREADABLE) and "Traceback" not in proc.stderr
        assert list_files() == []


class TestExitCodes:
    USAGES = {
        "no command of the name": ("conver",),
        "no such option": ("convert", ".", "-o", "d.onnx", "--fast"),
        "no output": ("convert", "."),
        "a bad shape": ("convert", ".", "-o", "d.onnx", "--input", "data"),
        "a bad size": ("convert", ".", "-o", "d.onnx", "--input", "data=1,-5"),
        "an input the model has not": ("convert", ".", "-o", "d.onnx", "--input", "image=1,1,8,8"),
        "an output the model has not": ("convert", ".", "-o", "d.onnx", "--outputs", "nothing"),
        "a bad rename": ("convert", ".", "-o", "d.onnx", "--rename", "data"),
        "a name renamed twice": (
            "convert", ".", "-o", "d.onnx", "--rename", "data=a", "--rename", "data=b"),
        "a name that is taken": ("convert", ".", "-o", "d.onnx", "--rename", "data=softmax_output"),
        "an opset nobody has": ("convert", ".", "-o", "d.onnx", "--opset", "99"),
        "an IR version nobody has": ("convert", ".", "-o", "d.onnx", "--ir-version", "99"),
        "an opset that is none": ("convert", ".", "-o", "d.onnx", "--opset", "new"),
        "a bad mode": ("convert", ".", "-o", "d.onnx", "--external-data", "maybe"),
        "a bad size of a name": ("convert", ".", "-o", "d.onnx", "--static", "N"),
        "an unknown suffix": ("convert", ".", "-o", "d.bin"),
        "a folder for a file": ("convert", ".", "-o", "folder.onnx"),
        "a folder that is not there": ("convert", ".", "-o", "none/d.onnx"),
        "a format that cannot be written": ("convert", "d.onnx", "-o", "d.other"),
    }  # fmt: skip

    @pytest.mark.parametrize("arguments", USAGES.values(), ids=USAGES)
    def test_two_for_usage(self, arguments):
        Path("folder.onnx").mkdir()
        code, out, err = serde(*arguments)
        assert (code, out) == (USAGE, "") and err and list_files() == ["folder.onnx"]

    UNREAD = {
        "nothing there": (None, "there is no such file, folder or prefix"),
        "nothing in it": (b"", "the file is empty"),
        "a pointer": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        "a page": (b"<html><body>404", "an HTML or XML page"),
        "text": (b"hello", "of no known format; installed: "),
        "half a symbol": (b'{"nodes": [{"op": "null"', "not symbol JSON"),
    }

    @pytest.mark.parametrize(("content", "why"), UNREAD.values(), ids=UNREAD)
    def test_three_for_what_cannot_be_read(self, content, why):
        if content is not None:
            Path("m.json").write_bytes(content)
        code, out, err = serde("convert", "m.json", "-o", "d.onnx")
        assert (code, out) == (UNREADABLE, "") and why in err and err.startswith("serde: ")
        assert "d.onnx" not in list_files()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_three_for_what_may_not_be_read(self):
        os.chmod("digits-symbol.json", 0)
        assert serde("convert", "digits-symbol.json", "-o", "d.onnx")[0] == UNREADABLE

    def test_damaged_parameters(self):
        data = Path("digits-0010.params").read_bytes()
        Path("digits-0010.params").write_bytes(data[:5000])
        code, _, err = serde("convert", "digits", "-o", "d.onnx")
        assert code == UNREADABLE and "digits-0010.params, byte " in err

    def test_one_for_what_cannot_be_converted(self):
        code, _, err = serde(
            "convert", unknown_operators(), "-o", "d.onnx", "--input", "data=1,4,2,2"
        )
        assert code == FAILED and "4 node(s) cannot be converted" in err

    def test_one_for_a_mistake_of_ours_without_a_traceback(self, monkeypatch):
        monkeypatch.setattr("serde.api.convert", lambda *a, **k: 1 / 0)
        code, _, err = serde("convert", ".", "-o", "d.onnx")
        assert code == FAILED
        assert (
            err
            == "serde: internal error: ZeroDivisionError: division by zero (--debug shows where)\n"
        )

    def test_debug_shows_where(self, monkeypatch):
        monkeypatch.setattr(sys, "argv", ["serde", "convert", "none", "-o", "d.onnx", "--debug"])
        result = CliRunner().invoke(main, sys.argv[1:])
        assert result.exit_code == UNREADABLE
        assert "Traceback" in result.stderr and result.stderr.endswith("file, folder or prefix\n")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    for stream, quiet, shown in [
        (Terminal(), False, True), (Terminal(), True, False), (io.StringIO(), False, False),
    ]:  # fmt: skip
        monkeypatch.setattr(sys, "stderr", stream)
        with show_stages(quiet) as progress:
            progress("read")
        assert bool(stream.getvalue()) is shown


@pytest.mark.parametrize(
    "command, target, place, is_on",
    [
        ("convert", "out.onnx", "serde.api.convert", False),
        ("run", "out.npz", "serde.backends.runner.run_files", True),
    ],
)
def test_the_collector_rests_unless_models_run(here, monkeypatch, command, target, place, is_on):
    states = []
    monkeypatch.setattr(place, lambda *_, **__: states.append(gc.isenabled()) or sys.exit())
    onnx.save(model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17), "m.onnx")
    serde(command, "m.onnx", "-o", target)
    assert (states, gc.isenabled()) == ([is_on], True)


def test_the_installed_command_runs(here):
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    proc = subprocess.run(
        [*SERDE, "convert", ".", "-o", "d.onnx"], capture_output=True, text=True, env=env
    )
    assert (proc.returncode, proc.stderr) == (DONE, "") and "→ d.onnx" in proc.stdout
    proc = subprocess.run([*SERDE, "convert", "x", "-o", "y"], capture_output=True, text=True)
    assert proc.returncode == USAGE


def test_a_reader_that_leaves_is_no_error():
    """``serde ops | head``"""
    process = subprocess.Popen([*SERDE, "ops"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


def test_an_interruption_leaves_nothing(here):
    code = (
        "import os, signal, serde.formats.onnx.writer as w\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # may be ignored outside
        "w._stream = lambda *a: os.kill(os.getpid(), signal.SIGINT)\n"
        "from serde.cli.commands import main; main(['convert', '.', '-o', 'd.onnx'])"
    )
    proc = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert proc.returncode == INTERRUPTED and proc.stderr.strip() == "Aborted!"
    assert list_files() == [] and not list(Path().glob(".*.part"))


@pytest.mark.parametrize(
    "module",
    ["serde.cli.commands", "click", "serde.cli.convert", "numpy", "onnx.onnx_cpp2py_export"],
)
def test_an_interruption_of_an_import_is_told_in_a_word(module):
    """Also where the module is an extension, whose C++ would abort the process."""
    code = f"""
import os, runpy, signal, sys
class Interrupter:
    def find_spec(self, name, *more):
        if name == {module!r} and self in sys.meta_path:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupter())
sys.argv[:1] = ["serde"]
runpy.run_module("serde", run_name="__main__")
"""
    arguments = ["convert", "digits-symbol.json", "-o", "d.onnx", "--verify"]
    command = [sys.executable, "-c", code, *arguments]
    proc = subprocess.run(command, capture_output=True, text=True)
    assert (proc.returncode, proc.stderr.strip()) == (INTERRUPTED, "Aborted!")


class TestEndOfTheProcess:
    """A command ends its process at once, when all is written."""

    def test_what_was_left_to_do_at_exit_is_done(self, tmp_path):
        code = (
            "import atexit, sys; atexit.register(lambda: print('left', flush=False)); "
            "from serde.cli.commands import main; main()"
        )
        command = [sys.executable, "-c", code, "ops", "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout.endswith("left\n")
        command[-2:] = ["convert", str(tmp_path / "none"), "-o", str(tmp_path / "a.onnx")]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 3

    def test_the_process_of_a_caller_goes_on(self):
        code = (
            "from serde.cli.commands import main\n"
            "try:\n    main(['formats'])\nexcept SystemExit as end:\n    print('on', end.code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.endswith("on 0\n")

    def test_a_thread_is_waited_for(self):
        code = (
            "import threading, serde.cli.commands as c\n"
            "def work():\n    threading.main_thread().join()\n    print('worked')\n"
            "threading.Thread(target=work).start()\nc.main()"
        )
        command = [sys.executable, "-c", code, "formats"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.endswith("worked\n")


class TestAlone:
    """What the command says where it is typed with too little."""

    def test_the_command_alone_prints_its_help_in_lines(self):
        done = subprocess.run(SERDE, capture_output=True, text=True)
        printed = done.stdout + done.stderr
        assert done.returncode == USAGE and "\\n" not in printed
        assert "\nCommands:\n" in printed and "\n  convert " in printed
        assert all(name in printed for name in ("MXNet", "ONNX", "PyTorch", "TensorFlow Lite"))
