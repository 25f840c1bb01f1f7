"""The options that make images of inputs, as ``serde convert`` reads them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from serde.cli.images import with_images


def read(*arguments):
    seen = {}

    @click.command()
    @with_images
    def command(images):
        seen["images"] = images

    result = CliRunner().invoke(command, [str(a) for a in arguments])
    return seen.get("images"), result.output


@pytest.mark.parametrize(
    ("arguments", "images"),
    [
        ((), None),
        (("--mean", "a=1,2,3", "--mean", "b=4"), {"mean": {"a": [1, 2, 3], "b": [4]}}),
        (("--std", "a=b=0.5"), {"std": {"a=b": [0.5]}}),
        (("--scale", "a=2", "--bgr", "a", "--layout", "a=NHWC:uint8"),
         {"scale": {"a": [2]}, "bgr": ("a",), "layout": {"a": "NHWC:uint8"}}),
    ],
)  # fmt: skip
def test_what_is_asked(arguments, images):
    assert read(*arguments)[0] == images


def test_labels_are_the_lines_of_a_file(tmp_path):
    (tmp_path / "labels").write_text("cat\n\n wild dog \n")
    assert read("--labels", tmp_path / "labels")[0] == {"labels": ["cat", "wild dog"]}


@pytest.mark.parametrize("arguments", [("--mean", "a"), ("--std", "a=x"), ("--layout", "NHWC"),
                                       ("--mean", "a=1", "--mean", "a=2")])  # fmt: skip
def test_what_means_nothing_is_refused(arguments):
    images, output = read(*arguments)
    assert images is None and ("is not NAME=" in output or "given twice" in output)
