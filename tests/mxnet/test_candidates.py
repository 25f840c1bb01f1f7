"""Files that may be a symbol or its parameters; and notes of those chosen among several."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

import serde
from serde.formats.mxnet.io.candidates import Candidate, open_file
from testing.mxnet import written
from testing.mxnet.written import params_bytes

SYMBOL, ARRAYS = written.network()
SYMBOL = SYMBOL if isinstance(SYMBOL, bytes) else SYMBOL.encode()
IMAGES = {"data": (1, 2, 8, 8)}


def open_by_name(name: str) -> Candidate:
    """A file of which the name alone tells."""
    return open_file(Path(name), b"")


@pytest.mark.parametrize(
    ("name", "prefix", "epoch"),
    [
        ("m-0012.params", "m", 12), ("m-12345.params", "m", 12345), ("m-3.params", "m", 3),
        ("m-3.params", "other", None), ("other-0003.params", "m", 3), ("m.params", "m", None),
        ("m-3.params", "m-3", None),
    ],
)  # fmt: skip
def test_epochs(name: str, prefix: str, epoch: int | None) -> None:
    assert open_by_name(name).epoch(prefix) == epoch


def test_kinds_by_names() -> None:
    assert open_by_name("m-symbol.json").is_symbol and not open_by_name("m-symbol.json").is_params
    assert open_by_name("m-0001.params").is_params and not open_by_name("m-0001.params").is_symbol
    assert open_by_name("m-0001.params").belongs_to("m") and not open_by_name(
        "n-0001.params"
    ).belongs_to("m")


def lay_out(folder: Path, *epochs: int) -> Path:
    """A folder with a symbol and parameters of some epochs."""
    folder.mkdir()
    (folder / "m-symbol.json").write_bytes(SYMBOL)
    for epoch in epochs:
        (folder / f"m-{epoch:04d}.params").write_bytes(params_bytes(ARRAYS))
    return folder


def list_notes(source: Path, target: Path, word: str, **options: object) -> list[str]:
    """The notes of a conversion that have a word in them."""
    report = serde.convert(source, target, inputs=IMAGES, **options)  # type: ignore[arg-type]
    return [note for note in report.notes if word in note]


def test_the_last_of_several_epochs_is_named(tmp_path: Path) -> None:
    source, target = lay_out(tmp_path / "net", 2, 10), tmp_path / "m.onnx"
    assert list_notes(source, target, "epoch") == [
        "parameters: m-0010.params, epoch 10, the last of 2; epoch= reads those of another"
    ]
    assert not list_notes(source, target, "epoch", epoch=2)
    assert not list_notes(lay_out(tmp_path / "one", 2), target, "epoch")


def test_models_of_other_formats_in_an_archive_are_named(tmp_path: Path) -> None:
    source, target = lay_out(tmp_path / "net", 1), tmp_path / "m.onnx"
    serde.convert(source, target, inputs=IMAGES)
    archive = tmp_path / "models.zip"
    for others in ((), ("copy.onnx",)):
        with zipfile.ZipFile(archive, "w") as packed:
            for file in source.iterdir():
                packed.write(file, file.name)
            for name in others:
                packed.write(target, name)
        notes = list_notes(archive, tmp_path / "again.onnx", "passed over")
        assert len(notes) == len(others)
    assert notes == [f"passed over: copy.onnx. To convert one, name it: {archive}:copy.onnx"]
    serde.convert(f"{archive}:copy.onnx", tmp_path / "again.tflite")
