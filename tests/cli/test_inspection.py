"""``serde inspect``: models and files of parameters, as text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner

from serde.cli.commands import main
from serde.cli.context import DONE, UNREADABLE, USAGE
from testing.onnx_live import DIGITS, model_of
from tests.command import list_files, run_command


def inspect(*arguments):
    result = CliRunner().invoke(main, ["inspect", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_types_of_mxnet_are_inferred():
    lines = inspect(DIGITS).splitlines()
    assert "  input  data: float32 (N, 1, H, W)" in lines
    assert "  output softmax_output: float32 (N, 10)" in lines
    assert "  weights 21,722 numbers, 86.9 KB" in lines


def test_values_and_weights():
    text = inspect(DIGITS, "--values", "--input", "data=1,1,8,8")
    assert "  Convolution: %conv1_output: float32[1,16,8,8]\n" in text
    pattern = (
        r"  weight %fc1_weight: float32\[32,512\]: min -0\.51, max .*, mean .*, std 0\.09592\n"
    )
    assert re.search(pattern, text)


def test_parameters_alone():
    text = inspect(DIGITS / "digits-0010.params")
    assert "parameters of mxnet, 15 arrays\n  weights 21,722 numbers" in text
    assert "  %aux:bn1_moving_mean: float32[16]\n" in text
    assert "name the model's file" in text


def test_json_is_of_lists():
    read = json.loads(inspect(DIGITS, "--json", "--values"))
    assert read["outputs"][0]["shape"] == ["N", 10]
    assert {len(w["statistics"]["histogram"]) for w in read["weights"]} == {24}


def test_several_models_stand_side_by_side(tmp_path):
    other = tmp_path / "m.onnx"
    onnx.save(
        model_of("g (float[N,3] x) => (float[N,3] y) { t = Neg(x)\n y = Relu(t) }", 13), other
    )
    text = inspect(DIGITS, other)
    rows = {line[:15].strip(): re.split(r"\s{2,}", line[15:].strip()) for line in text.splitlines()}
    assert rows["model"] == [str(DIGITS), str(other)]
    assert rows["input 1"] == ["data float32 (N, 1, H, W)", "x float32 (N, 3)"]
    assert rows["nodes"] == ["13", "2"] and rows["Neg"] == ["–", "1"]
    assert rows["weights"] == ["21,722", "0"]
    read = json.loads(inspect(DIGITS, other, "--json"))
    assert [each["source_format"] for each in read] == ["mxnet", "onnx"]
    result = CliRunner().invoke(main, ["inspect", str(DIGITS), str(other), "--values"])
    assert result.exit_code == 2 and "name one" in result.output


@pytest.mark.usefixtures("digits_here")
class TestInspect:
    def test_what_a_model_holds(self):
        code, out, _ = run_command("inspect", "digits")
        assert code == DONE
        assert out.startswith("digits: mxnet 1.9.1, 13 nodes\n  input  data:")
        assert "Convolution ×2" in out and "softmax_label" in out

    def test_every_value(self):
        code, out, _ = run_command("inspect", ".", "--values", "--input", "data=1,1,8,8")
        assert (
            code == DONE and "  Convolution: %conv1_output: float32[1,16,8,8]" in out.splitlines()
        )

    def test_json(self):
        code, out, _ = run_command("inspect", ".", "--json")
        assert code == DONE and json.loads(out)["operators"]["Convolution"] == 2

    def test_an_onnx_model(self):
        run_command("convert", ".", "-o", "d.onnx")
        code, out, _ = run_command("inspect", "d.onnx")
        assert code == DONE and out.startswith("d.onnx: onnx opset 17, 12 nodes\n")

    def test_nothing_is_written(self):
        run_command("inspect", ".")
        assert list_files() == []


@pytest.mark.usefixtures("digits_here")
class TestHash:
    def test_weights_are_those_a_model_was_written_with(self):
        run_command(
            "convert", ".", "-o", "d.onnx", "--hash", "--external-data", "always", "--report", "r"
        )
        code, out, _ = run_command("verify-hash", "d.onnx")
        assert code == DONE and out.startswith("d.onnx: the weights have SHA-256 ")
        digest = out.split("SHA-256 ")[1][:64]
        kept = {p.key: p.value for p in onnx.load("d.onnx").metadata_props}
        assert kept["serde.weights.sha256"] == digest and digest in Path("r").read_text()

    def test_an_exchanged_sidecar_is_found(self):
        run_command("convert", ".", "-o", "d.onnx", "--hash", "--external-data", "always")
        data = bytearray(Path("d.onnx.data").read_bytes())
        data[5000] ^= 1
        Path("d.onnx.data").write_bytes(data)
        code, _, err = run_command("verify-hash", "d.onnx")
        assert code == UNREADABLE and "its weights are not those it was written with" in err

    def test_a_model_without_one(self):
        run_command("convert", ".", "-o", "d.onnx")
        code, _, err = run_command("verify-hash", "d.onnx")
        assert code == USAGE and "holds no hash of its weights" in err
