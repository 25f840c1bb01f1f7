"""Recurrent layers, unrolled."""

from __future__ import annotations

from serde.decompositions import recurrent

from ..target import recasts

recasts("RNN")(recurrent.unroll_rnn)
recasts("GRU")(recurrent.unroll_gru)
recasts("LSTM")(recurrent.unroll_lstm)
