"""How comparisons are shown on a page."""

from __future__ import annotations

import re

import numpy as np

from serde.api.report.comparison import draw_histogram, show_layers, show_outputs
from serde.verification import Verification, compare
from serde.verification.compare_layers import LayerComparison, LayersComparison
from serde.verification.compare_outputs import HIGHEST, LOWEST


def test_the_histogram_counts_by_share_of_the_tolerance():
    expected = np.float32([8, 8, 8, 8, 8])
    result = compare("y", expected + np.float32([0, 0, 1e-6, 5e-4, 1]), expected)
    assert sum(result.histogram) == 5 and result.histogram[0] == 2 and result.histogram[-1] == 1
    assert [at for at, n in enumerate(result.histogram) if n] == [0, 8, 17, 22]
    picture = draw_histogram(result.histogram)
    assert picture.count('class="over"') == 5 and "equal: 2 of 5" in picture


def test_bars_of_a_histogram_name_their_bins():
    counts = [1] * (HIGHEST - LOWEST + 3)
    titles = re.findall(r"<title>(.*?): 1 of", draw_histogram(counts))
    assert titles[0] == "equal" and titles[1] == f"less than 2^{LOWEST} of the tolerance"
    assert titles[2:-1] == [f"2^{p} to 2^{p + 1} of the tolerance" for p in range(LOWEST, HIGHEST)]
    assert titles[-1] == f"2^{HIGHEST} of the tolerance and more" and draw_histogram([]) == ""


def test_outputs_have_rows_with_their_worst_element():
    bad = compare("<y>", np.float32([1, 2]), np.float32([1, 3]))
    text = show_outputs(Verification(True, "mxnet", "random", [bad], not_compared=["z"]))
    assert "&lt;y&gt;" in text and "<y>" not in text and 'class="bad">FAIL' in text
    assert "element [1] is 2.0, not 3.0" in text and "not compared: z" in text
    nothing = Verification(False, "", "", statement="<no> runtime")
    assert show_outputs(nothing) == '<p class="callout calm">&lt;no&gt; runtime</p>'


def test_of_many_layers_the_rest_are_counted(monkeypatch):
    monkeypatch.setattr("serde.api.report.comparison.MOST_LAYERS", 2)
    good, bad = (compare("v", np.float32([n]), np.float32([1])) for n in (1, 2))
    layers = [LayerComparison("Neg", "n", {}, f"v{i}", f"v{i}" if i else "w", bad if i == 4 else good)
              for i in range(5)]  # fmt: skip
    text = show_layers(LayersComparison(layers))
    assert text.count("<tr>") == 3 and "and 3 more" in text and "v0 / w" in text
    assert show_layers(None) == ""
