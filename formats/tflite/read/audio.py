"""Spectra of sounds, and their coefficients on a scale that is near to what people hear."""

from __future__ import annotations

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.graph import DType, Value

from ..io.read_flexbuffer import read_map
from ..rules import reads

LEAST = 1e-12  # energy of a band, below which it counts as this
LONGEST = 1 << 20  # samples of a window


def read_options(data: bytes, *names: str) -> list[int]:
    """The numbers of these names, as integers, which LiteRT reads them as.

    Raises:
        ConversionError: where some are left out.
    """
    try:
        options = read_map(data)
        return [int(options[name]) for name in names]
    except (KeyError, OverflowError, ValueError) as error:
        raise ConversionError(f"no option {error}. Write the model anew") from None


@reads("AudioSpectrogram")
def read_spectrogram(g, x, *, custom_options: bytes = b""):
    """Squares of magnitudes (channels, frames, bins) of samples (samples, channels).

    Windows are filled up to a power of two, and the samples behind the last of them.
    """
    size, stride, is_squared = read_options(
        custom_options, "window_size", "stride", "magnitude_squared"
    )
    require(1 < size <= LONGEST and stride > 0, f"windows of {size} samples, each {stride} behind "
            "the last. Correct them")  # fmt: skip
    length = 1 << (size - 1).bit_length()
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    weights = np.pad(window, (0, length - size)).astype(np.float32)
    samples = g.Pad(g.Transpose(x, perm=(1, 0)), [0, 0, 0, length - size])
    spectra = g.STFT(g.Unsqueeze(samples, [2]), g.const(stride, DType.INT64), g.const(weights),
                     g.const(length, DType.INT64), onesided=1)  # fmt: skip
    return g["ReduceSumSquare" if is_squared else "ReduceL2"](spectra, [3], keepdims=0)


@reads("Mfcc")
def read_mfcc(g, spectrogram, rate, *, custom_options: bytes = b""):
    """Logarithms of bands of a spectrum, as sums of cosines."""
    high, low, bands, count = read_options(
        custom_options, "upper_frequency_limit", "lower_frequency_limit",
        "filterbank_channel_count", "dct_coefficient_count",
    )  # fmt: skip
    require(0 <= low < high and 0 < count <= bands < LONGEST, f"{count} coefficients of {bands} "
            f"bands between {low} and {high} Hz. Correct them")  # fmt: skip
    bins = spectrogram.ranked_shape[-1]
    require(isinstance(bins, int) and bins > 1, "a spectrum of unknown size. Give it "
            "(--static, --input)")  # fmt: skip
    weights, is_in = weigh_bins(g, rate, bins, bands, low, high)
    energy = g.MatMul(g.Sqrt(spectrogram), weights)
    angles = np.outer(np.arange(bands) + 0.5, np.arange(count)) * np.pi / bands
    cosines = (np.sqrt(2 / bands) * np.cos(angles)).astype(np.float32)
    coefficients = g.MatMul(g.Log(g.Max(energy, np.float32(LEAST))), cosines)
    return g.Where(is_in, coefficients, np.float32(0))


def weigh_bins(g, rate: Value, bins: int, bands: int, low: int, high: int):
    """How much of each bin is in each band, and whether the spectrum has all of them.

    A band is a triangle from the middle of the one before to that of the one behind, on the mel
    scale.
    """
    hertz = g.Mul(g.cast(g.Reshape(rate, [1]), DType.FLOAT32), np.float32(0.5 / (bins - 1)))
    places = np.arange(bins, dtype=np.float32)
    first = g.Floor(g.Add(g.Div(np.float32(low), hertz), np.float32(1.5)))
    last = g.Floor(g.Div(np.float32(high), hertz))
    is_used = g.And(g.GreaterOrEqual(places, first), g.LessOrEqual(places, last))
    lowest, highest = (1127 * np.log1p(f / 700) for f in (low, high))
    step = (highest - lowest) / (bands + 1)
    middles = (lowest / step + 1 + np.arange(bands)).astype(np.float32)
    rises = g.Log(g.Add(g.Mul(g.Mul(places, hertz), np.float32(1 / 700)), np.float32(1)))
    mels = g.Unsqueeze(g.Mul(rises, np.float32(1127 / step)), [1])
    shares = g.Relu(g.Sub(np.float32(1), g.Abs(g.Sub(mels, middles))))
    weights = g.Where(g.Unsqueeze(is_used, [1]), shares, np.float32(0))
    return weights, g.Less(last, np.float32(bins))
