"""Spectra of sounds are those of LiteRT, whatever the windows, the bands and the rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from serde.formats.tflite.io.read_flexbuffer import read_map
from testing.pt2.run import run_onnx
from testing.tflite.flexbuffers import pack_map
from testing.tflite.models import Case, Operand, write
from testing.tflite.whole_models import make_custom
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
SPECTRA = [  # samples, channels, window, stride, whether squares are asked for
    (200, 1, 32, 16, True), (203, 2, 20, 7, True), (64, 1, 64, 1, False), (90, 3, 33, 40, False),
]  # fmt: skip
MELS = [  # rate, bins, limits, bands, coefficients
    (16000, 257, 20, 4000, 40, 13), (44100, 513, 0, 8000, 20, 20), (8000, 33, 100, 3999, 6, 1),
    (11025, 129, 300, 9000, 12, 4), (16000, 129, 20.7, 4000.9, 30, 10),
]  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


def make_spectrogram(samples, channels, window, stride, is_squared, signature=()):
    options = {"window_size": window, "stride": stride, "magnitude_squared": is_squared}
    sound = np.random.default_rng(0).uniform(-1, 1, (samples, channels)).astype(np.float32)
    case = Case("ADD", [Operand(sound, signature=signature)])
    return write(make_custom("AudioSpectrogram", pack_map(options), case)), case.feeds()


def make_mfcc(rate, bins, low, high, bands, count, is_constant):
    options = {
        "upper_frequency_limit": float(high), "lower_frequency_limit": float(low),
        "filterbank_channel_count": bands, "dct_coefficient_count": count,
    }  # fmt: skip
    spectrogram = np.random.default_rng(1).exponential(9, (2, 3, bins)).astype(np.float32)
    spectrogram[0, 1] = 0  # silence
    operands = [Operand(spectrogram), Operand(np.array([rate], np.int32), is_constant)]
    case = Case("ADD", operands)
    return write(make_custom("Mfcc", pack_map(options), case)), case.feeds()


def compare(data: bytes, feeds, worker, folder: Path) -> None:
    """In ONNX Runtime, and in LiteRT once more."""
    (folder / "m.tflite").write_bytes(data)
    (expected,) = worker.run(str(folder / "m.tflite"), feeds, delegates=False)
    graph = serde.load(folder / "m.tflite")
    serde.save(graph, folder / "m.onnx")
    serde.save(graph, folder / "again.tflite")
    for (got,) in (run_onnx(folder / "m.onnx", feeds),
                   *run_both(worker, folder / "again.tflite", feeds)):  # fmt: skip
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, 1e-5, 1e-5 * np.abs(expected).max())


@needs_litert
@pytest.mark.parametrize("form", SPECTRA)
def test_spectrograms(form, worker, tmp_path: Path) -> None:
    compare(*make_spectrogram(*form), worker, tmp_path)


@needs_litert
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("form", MELS)
def test_coefficients(form, is_constant, worker, tmp_path: Path) -> None:
    compare(*make_mfcc(*form, is_constant), worker, tmp_path)


@needs_litert
def test_sounds_of_any_length(worker, tmp_path: Path) -> None:
    data, _ = make_spectrogram(200, 1, 32, 16, True, signature=(-1, 1))
    (tmp_path / "m.tflite").write_bytes(data)
    serde.save(serde.load(tmp_path / "m.tflite"), tmp_path / "m.onnx")
    for length in (90, 333):
        sound = np.random.default_rng(length).standard_normal((length, 1)).astype(np.float32)
        (expected,) = worker.run(str(tmp_path / "m.tflite"), [sound], delegates=False)
        (got,) = run_onnx(tmp_path / "m.onnx", [sound])
        np.testing.assert_allclose(got, expected, 1e-5, 1e-5 * expected.max())


def test_options_are_read_and_bad_ones_refused(tmp_path: Path) -> None:
    options = {"window_size": 20, "stride": 0, "magnitude_squared": True, "rate": 0.5}
    assert read_map(pack_map(options)) == options
    (tmp_path / "m.tflite").write_bytes(make_spectrogram(50, 1, 20, 0, True)[0])
    with pytest.raises(Unconvertible, match="windows of 20 samples, each 0 behind the last"):
        serde.load(tmp_path / "m.tflite")
    (tmp_path / "m.tflite").write_bytes(make_mfcc(8000, 33, 9, 9, 4, 5, True)[0])
    with pytest.raises(Unconvertible, match="5 coefficients of 4 bands between 9 and 9 Hz"):
        serde.load(tmp_path / "m.tflite")
    case = Case("ADD", [Operand(np.zeros((50, 1), np.float32))])
    data = write(make_custom("AudioSpectrogram", pack_map({"stride": 2}), case))
    (tmp_path / "m.tflite").write_bytes(data)
    with pytest.raises(Unconvertible, match="no option 'window_size'. Write the model anew"):
        serde.load(tmp_path / "m.tflite")
