"""Boxes that are suppressed and regions of images, for tract."""

from __future__ import annotations

from serde.errors import require
from serde.legalize.forms.form import STATIC
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.roi import align_regions


def legalize_detection(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("NonMaxSuppression")(legalize_non_max_suppression)
    legalize("RoiAlign")(legalize_roi_align)


def legalize_non_max_suppression(
    g, boxes, scores, most=None, *limits, center_point_box: int
):  # fmt: skip
    """tract takes 0 boxes, which is the default, for all, and fewer for none."""
    most = g.const([0]) if most is None else most
    if most.shape_data is None:
        most = g.Where(g.Equal(most, 0), g.const([-1], most.type), most)
    form = {"center_point_box": center_point_box}
    return g.as_is("NonMaxSuppression", (boxes, scores, most, *limits), form)


def legalize_roi_align(g, x, rois, batch, **form):
    """tract multiplies no sizes by name, which pick the elements of an image."""
    is_known = all(isinstance(d, int) for d in x.ranked_shape[2:])
    require(is_known, f"tract takes images whose sizes have numbers. {STATIC}")
    return align_regions(g, x, rois, batch, **form)
