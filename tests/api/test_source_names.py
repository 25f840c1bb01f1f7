"""What errors and reports call a source whose copy is read."""

from __future__ import annotations

import os

import pytest

from serde.api.source_names import find_path, is_remote, leave_out, name_source
from serde.errors import MalformedFile


@pytest.mark.parametrize("place, shown", [("", "m.onnx"), ("held.zip:", "held.zip:m.onnx")])
def test_errors_leave_out_the_folder_of_the_copy(place, shown, tmp_path):
    folder = str(tmp_path)
    with pytest.raises(MalformedFile) as caught, leave_out(folder, "held.zip", place):
        raise MalformedFile(os.path.join(folder, "m.onnx"), "it is cut off")
    assert str(caught.value) == f"{shown}: it is cut off" and caught.value.path == shown


def test_reports_name_what_the_user_named():
    class Report:
        source = "/copy/m.onnx"

    name_source(report := Report(), "/copy/m.onnx", "s3://held/m.onnx")
    assert report.source == "s3://held/m.onnx"


def test_places():
    assert find_path("file:///a/m.onnx") == "/a/m.onnx" and not is_remote("file:///a/m.onnx")
    assert is_remote("s3://a/m.onnx") and not is_remote("a/m.onnx") and find_path(3) == 3
