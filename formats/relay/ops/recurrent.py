"""Recurrent layers, laid out step by step."""

from __future__ import annotations

from serde.decompositions import recurrent

from ..target import recasts

recasts("RNN")(recurrent.lay_out_rnn)
recasts("GRU")(recurrent.lay_out_gru)
recasts("LSTM")(recurrent.lay_out_lstm)
