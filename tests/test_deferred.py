"""What is imported late is the thing at its place, looked up once."""

import math
import sys

from serde.plugins.deferred import Deferred


def test_a_function_is_called_where_it_is():
    assert Deferred("math:hypot")(3, 4) == 5
    assert Deferred("math:pi").value is math.pi


def test_nothing_is_imported_before_it_is_asked_for():
    sys.modules.pop("colorsys", None)
    late = Deferred("colorsys:rgb_to_hsv")
    assert "colorsys" not in sys.modules
    assert late(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert late.value is sys.modules["colorsys"].rgb_to_hsv
