"""Speech in plain NumPy: a mel spectrogram, CTC decoding, and a step of beam search."""

import numpy as np

RATE, FFT, HOP, MELS = 16000, 400, 160, 40


def mel_filters():
    """Triangles on the mel scale: (MELS, FFT // 2 + 1)."""

    def to_hertz(mel):
        return 700 * (10 ** (mel / 2595) - 1)

    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = to_hertz(np.linspace(0, top, MELS + 2))
    bins = np.linspace(0, RATE / 2, FFT // 2 + 1)
    rise = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rise, fall)).astype(np.float32)


def mel_spectrogram(signal):
    """(N, samples) to (N, MELS, frames): framed, windowed, transformed, filtered, as logarithms."""
    padded = np.pad(signal, ((0, 0), (FFT // 2, FFT // 2)), "reflect")
    frames = (padded.shape[1] - FFT) // HOP + 1
    places = np.arange(frames)[:, None] * HOP + np.arange(FFT)
    window = np.hanning(FFT + 1)[:-1].astype(np.float32)
    spectrum = np.fft.rfft(padded[:, places] * window)
    power = (np.abs(spectrum) ** 2).astype(np.float32)
    mels = mel_filters() @ np.swapaxes(power, 1, 2)
    return np.log10(np.maximum(mels, np.float32(1e-10)))


def decode_ctc(logits, blank=0):
    """(N, time, labels) to the best labels without repetitions and blanks, and lengths."""
    best = logits.argmax(-1)
    before = np.concatenate([np.full_like(best[:, :1], -1), best[:, :-1]], 1)
    spoken = (best != blank) & (best != before)
    order = np.argsort(~spoken, axis=1, kind="stable")
    lengths = spoken.sum(1)
    labels = np.take_along_axis(best, order, 1)
    return np.where(np.arange(best.shape[1]) < lengths[:, None], labels, -1), lengths


def step_beam(scores, logits):
    """Beams (N, K) and the logits of their next tokens (N, K, V) to the K best continuations."""
    largest = logits.max(-1, keepdims=True)
    logarithms = logits - largest - np.log(np.exp(logits - largest).sum(-1, keepdims=True))
    beams, tokens = scores.shape[1], logits.shape[2]
    every = (scores[..., None] + logarithms).reshape(scores.shape[0], beams * tokens)
    order = np.argsort(-every, axis=1, kind="stable")[:, :beams]
    best = np.take_along_axis(every, order, 1)
    return {"scores": best, "parents": order // tokens, "tokens": order % tokens}
