"""``serde convert``: its options, what it writes and prints, and its verification."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest

from serde.cli.context import DONE, FAILED, NOT_COMPARED, UNREADABLE, USAGE
from testing.onnx_live import model_of
from tests.command import list_files, run_command, write_unknown_operators

pytestmark = pytest.mark.usefixtures("digits_here")


class TestConvert:
    @pytest.mark.parametrize("source", ["digits-symbol.json", "digits", "."])
    def test_a_file_a_prefix_and_a_folder(self, source):
        code, out, err = run_command("convert", source, "-o", "d.onnx")
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
        assert run_command("convert", "m.tar.gz", "-o", "d.onnx")[0] == DONE

    def test_opset_and_ir_version(self):
        assert (
            run_command("convert", ".", "-o", "d.onnx", "--opset", 11, "--ir-version", 6)[0] == DONE
        )
        model = onnx.load("d.onnx")
        assert (model.opset_import[0].version, model.ir_version) == (11, 6)

    def test_the_defaults_are_opset_17_and_ir_version_8(self):
        run_command("convert", ".", "-o", "d.onnx")
        model = onnx.load("d.onnx")
        assert (model.opset_import[0].version, model.ir_version) == (17, 8)

    def test_inputs_outputs_and_new_names(self):
        code, out, _ = run_command(
            "convert", ".", "-o", "d.onnx", "--input", "data=batch,1,8,8:float32",
            "--outputs", "fc1,softmax", "--rename", "data=pixels", "--rename", "softmax_output=p",
        )  # fmt: skip
        assert code == DONE
        assert "input  pixels: float32 (batch, 1, 8, 8)" in out
        assert "output fc1_output: float32 (batch, 32)" in out and "output p: float32" in out

    def test_a_size_instead_of_a_name(self):
        code, out, _ = run_command(
            "convert", ".", "-o", "d.onnx", "--static", "N=2", "--static", "H=8", "--static", "W=8"
        )
        assert code == DONE and "data: float32 (2, 1, 8, 8)" in out

    def test_a_batch_and_a_front_cut_off(self):
        run_command("convert", ".", "-o", "d.onnx", "--input", "data=1,1,8,8")
        code, out, _ = run_command("convert", "d.onnx", "-o", "e.onnx", "--rebatch", "7")
        assert code == DONE and "data: float32 (7, 1, 8, 8)" in out
        code, out, _ = run_command("convert", "d.onnx", "-o", "e.onnx", "--rebatch", "N")
        assert code == DONE and "data: float32 (N, 1, 8, 8)" in out
        more = "--rebatch", "data=0:N", "--rebatch", "softmax_output=0"
        code, out, _ = run_command("convert", "d.onnx", "-o", "e.onnx", *more)
        assert code == DONE and "data: float32 (N, 1, 8, 8)" in out
        code, _, err = run_command("convert", "d.onnx", "-o", "e.onnx", "--rebatch", "data=x")
        assert code == USAGE and "--rebatch 'data=x' is not N, NAME=AXIS:N or NAME=none" in err
        code, out, _ = run_command(
            "convert", "d.onnx", "-o", "e.onnx", "--cut-inputs", "flatten_output"
        )
        assert code == DONE and "input  flatten_output: float32 (1, 512)" in out

    def test_a_profile(self):
        code, _, err = run_command("convert", ".", "-o", "d.onnx", "--profile", "npu-static")
        assert code == USAGE and "static shapes only" in err and list_files() == []
        code, *_ = run_command("convert", ".", "-o", "d.onnx", "--profile", "npu-static",
                         "--input", "data=1,1,8,8")  # fmt: skip
        assert code == DONE and onnx.load("d.onnx").opset_import[0].version == 13
        code, _, err = run_command("convert", ".", "-o", "d.onnx", "--profile", "abacus")
        assert code == USAGE and "'abacus' is not one of coreml, generic, mnn, ncnn," in err

    def test_parameters_elsewhere_and_an_epoch(self):
        os.rename("digits-0010.params", "elsewhere.bin")
        assert run_command("convert", "digits-symbol.json", "-o", "d.onnx")[0] == UNREADABLE
        code, *_ = run_command(
            "convert", "digits-symbol.json", "-o", "d.onnx", "--params", "elsewhere.bin"
        )
        assert code == DONE
        shutil.copy("elsewhere.bin", "digits-0003.params")
        assert run_command("convert", "digits", "-o", "d.onnx", "--epoch", 3)[0] == DONE
        code, _, err = run_command("convert", "digits", "-o", "d.onnx", "--epoch", 4)
        assert code == USAGE and "no parameters of epoch 4" in err

    def test_arrays_that_belong_to_nothing(self):
        from serde.formats.mxnet.io.params import read_params

        held = {n: t.load() for n, t in read_params("digits-0010.params").by_name().items()}
        np.savez("extra.npz", **held, stray=np.zeros(3, np.float32))
        command = ("convert", "digits-symbol.json", "-o", "d.onnx", "--params", "extra.npz")
        for more in ((), ("--ignore-extra",)):
            code, out, err = run_command(*command, *more)
            assert code == DONE and "'stray' left out" in out + err

    def test_an_array_that_was_likely_meant_for_a_variable(self):
        from serde.formats.mxnet.io.params import read_params

        held = {n: t.load() for n, t in read_params("digits-0010.params").by_name().items()}
        name = next(n for n in held if n.endswith("weight"))
        np.savez("misspelt.npz", **{n if n != name else f"{n}s": a for n, a in held.items()})
        code, _, err = run_command(
            "convert", "digits-symbol.json", "-o", "d.onnx", "--params", "misspelt.npz"
        )
        assert code == UNREADABLE and f"{name}s" in err and "--ignore-extra" in err

    @pytest.mark.parametrize(
        ("mode", "files"),
        [("auto", ["d.onnx"]), ("never", ["d.onnx"]), ("always", ["d.onnx", "d.onnx.data"]),
         ("reference", ["d.onnx"])],
    )  # fmt: skip
    def test_external_data(self, mode, files):
        assert run_command("convert", ".", "-o", "d.onnx", "--external-data", mode)[0] == DONE
        assert list_files() == files

    def test_formats_by_name(self):
        shutil.copy("digits-symbol.json", "strange.name")
        code, *_ = run_command("convert", "strange.name", "-o", "d.model", "--from", "mxnet",
                         "--to", "onnx", "--params", "digits-0010.params")  # fmt: skip
        assert code == DONE and onnx.load("d.model").graph.node
        for option in ("--from", "--to"):
            code, _, err = run_command("convert", ".", "-o", "d.onnx", option, "caffe")
            assert code == USAGE and "'caffe' is not one of" in err

    def test_one_opset_to_another(self):
        onnx.save(
            model_of("g (float[N,3] x) => (float[N,3] y) { y = Softmax(x) }", 11, 6), "a.onnx"
        )
        code, out, _ = run_command("convert", "a.onnx", "-o", "b.onnx", "--opset", 13)
        assert code == DONE and out.startswith("a.onnx (onnx) → b.onnx")
        assert onnx.load("b.onnx").opset_import[0].version == 13

    def test_hard_links_where_paths_are_strict(self):
        run_command("convert", ".", "-o", "d.onnx", "--external-data", "always")
        os.link("d.onnx.data", "other")
        assert run_command("convert", "d.onnx", "-o", "e.onnx")[0] == DONE
        code, _, err = run_command("convert", "d.onnx", "-o", "e.onnx", "--strict-paths")
        assert code == UNREADABLE and "a hard link" in err
        code, _, err = run_command("convert", "digits", "-o", "e.onnx", "--strict-paths")
        assert code == USAGE and "mxnet takes no option --strict-paths here" in err

    def test_a_report(self):
        run_command("convert", ".", "-o", "d.onnx", "--report", "r.json", "--input", "data=N,1,8,8")
        report = json.loads(Path("r.json").read_text())
        assert report["ok"] and report["files"] == ["d.onnx"] and report["source_format"] == "mxnet"
        assert report["operators"]["Conv"] == 2 and report["parameters"] == 21722
        assert report["inputs"] == [{"name": "data", "dtype": "float32", "shape": "(N, 1, 8, 8)"}]
        assert set(report["seconds"]) == {"read", "convert", "write"}

    def test_quiet(self):
        assert run_command("convert", ".", "-o", "d.onnx", "--quiet") == (DONE, "", "")
        code, out, err = run_command("convert", "none", "-o", "d.onnx", "-q")
        assert (code, out) == (UNREADABLE, "") and err.startswith("serde: none: there is no such")

    def test_what_was_there_stays_where_it_fails(self):
        Path("d.onnx").write_bytes(b"\x08\x08before")
        code, *_ = run_command(
            "convert", write_unknown_operators(), "-o", "d.onnx", "--input", "data=1,2"
        )
        assert code == FAILED and Path("d.onnx").read_bytes() == b"\x08\x08before"
        assert list_files() == ["d.onnx", "odd-symbol.json"]


class TestVerify:
    GIVEN = ("--data", "test.npz", "--expected", "test.npz")

    def test_numbers_that_agree(self):
        code, out, _ = run_command("convert", ".", "-o", "d.onnx", *self.GIVEN)
        assert code == DONE
        assert "verification against the outputs given, the inputs given:" in out
        assert "softmax_output float32[360, 10]: max_abs " in out and out.endswith(": pass\n")

    def test_numbers_that_do_not(self):
        held = dict(np.load("test.npz", allow_pickle=False))
        np.savez("wrong.npz", **{**held, "expected": held["expected"] + np.float32(0.1)})
        wrong = ("--data", "test.npz", "--expected", "wrong.npz")
        code, out, err = run_command("convert", ".", "-o", "d.onnx", *wrong, "--report", "r.json")
        assert (code, err) == (FAILED, "") and "FAIL (off by 0.1" in out
        report = json.loads(Path("r.json").read_text())
        assert not report["ok"] and not report["verification"]["outputs"][0]["passed"]
        code, out, err = run_command("convert", ".", "-o", "d.onnx", *wrong, "--quiet")
        assert (code, out) == (FAILED, "") and "FAIL (off by 0.1" in err

    def test_an_onnx_source_is_run(self):
        onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8), "a.onnx")
        code, out, _ = run_command("convert", "a.onnx", "-o", "b.onnx", "--opset", 13, "--verify")
        assert code == DONE and "verification against onnx, random inputs, seed 0:" in out

    def test_a_source_that_cannot_be_run_is_said_so(self, monkeypatch):
        from serde.bridges import mxnet
        from serde.errors import MissingDependency

        def absent(*arguments):
            raise MissingDependency("MXNet is not here")

        monkeypatch.setattr(mxnet, "get_worker", absent)
        monkeypatch.setattr(mxnet, "_runs_here", lambda *kernels: False)
        ask = ("convert", ".", "-o", "d.onnx", "--input", "data=N,1,8,8")
        for more, code in ((("--verify",), DONE), (("--verify-strict",), NOT_COMPARED),
                           (("--verify-strict", "--quiet"), NOT_COMPARED)):  # fmt: skip
            status, out, err = run_command(*ask, *more)
            assert status == code and "not compared" not in out
            assert "not compared: the source could not be run. MXNet is not here" in err
            assert "--expected out.npz with --data in.npz" in err

    def test_strict_verification_that_compares(self):
        onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8), "a.onnx")
        code, out, err = run_command("convert", "a.onnx", "-o", "b.onnx", "--verify-strict")
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
            status, out, err = run_command("convert", "a.onnx", "-o", "b.onnx", more, *data)
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
            status, _, err = run_command("convert", "a.onnx", "-o", "b.onnx", more)
            assert status == code and "the result could not be run. TVM is not here" in err

    def test_a_result_that_fails_to_run_is_wrong(self, monkeypatch):
        from serde.errors import SerdeError
        from serde.verification import compare_results

        def fail(*arguments, **options):
            raise SerdeError("no")

        onnx.save(model_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", 17, 8), "a.onnx")
        monkeypatch.setattr(compare_results, "prepare", fail)
        code, out, _ = run_command("convert", "a.onnx", "-o", "b.onnx", "--verify")
        assert code == FAILED and "the result failed to run, its source did not" in out

    def test_a_tolerance_decides(self):
        right = np.load("test.npz")["data"][:4]
        run_command("convert", ".", "-o", "d.onnx", "--input", "data=N,1,8,8")
        scores = __import__("onnxruntime").InferenceSession("d.onnx").run(None, {"data": right})[0]
        np.savez("in.npz", data=right)
        np.savez("out.npz", y=scores * 1.01)
        ask = ("convert", ".", "-o", "d.onnx", "--data", "in.npz", "--expected", "out.npz")
        assert run_command(*ask)[0] == FAILED
        assert run_command(*ask, "--rtol", 0.02)[0] == DONE
        assert run_command(*ask, "--rtol", 0.001)[0] == FAILED
        assert run_command(*ask, "--rtol", -1)[0] == USAGE

    def test_data_that_are_none(self):
        Path("bad.npz").write_bytes(b"nothing")
        code, _, err = run_command("convert", ".", "-o", "d.onnx", "--verify", "--data", "bad.npz")
        assert code == UNREADABLE and "bad.npz: not an .npz file" in err
        code, _, err = run_command(
            "convert", ".", "-o", "d.onnx", "--verify", "--data", "absent.npz"
        )
        assert code == UNREADABLE and "absent.npz" in err
