"""The options that make images of inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from serde.cli.options import add_option, parse_by_name
from serde.plugins.options import IMAGES


def _parse_numbers(text: str) -> tuple[str, list[float]]:
    name, equals, numbers = text.rpartition("=")
    try:
        if equals and name:
            return name, [float(x) for x in numbers.split(",")]
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not NAME=X,X,X, such as data=123.7,116.3,103.5")


def _parse_layout(text: str) -> tuple[str, str]:
    name, equals, layout = text.rpartition("=")
    if not (equals and name):
        raise click.BadParameter(f"{text!r} is not NAME=LAYOUT, such as data=NHWC:uint8")
    return name, layout


def _numbers(flag: str, help: str, details: str = "") -> Callable[..., Any]:
    return add_option(
        flag, multiple=True, metavar="NAME=X,X,X", group=IMAGES, help=help, details=details,
        callback=lambda c, p, values: parse_by_name(map(_parse_numbers, values)),
    )  # fmt: skip


ADD = (
    _numbers("--mean", "What is subtracted from the pixels of an image input, of each channel.",
             "The input takes an image, and the model `(scale * x - mean) / std` of it, in the "
             "order of its own channels. See [prepare-images.md](../how-to/prepare-images.md)."),
    _numbers("--std", "What the pixels are divided by then."),
    _numbers("--scale", "What the pixels are multiplied by first: 0.00392157 for 1/255."),
    add_option("--bgr", multiple=True, metavar="NAME", group=IMAGES,
               help="The model's channels are in the order blue, green, red, those of the image "
                    "red, green, blue."),
    add_option("--layout", multiple=True, metavar="NAME=LAYOUT[:dtype]", group=IMAGES,
               help="The layout of the image: NHWC, NCHW, HWC or CHW, and the type of its pixels.",
               details="`data=NHWC:uint8`. The model's own if left out.",
               callback=lambda c, p, values: parse_by_name(map(_parse_layout, values))),
    add_option("--labels", metavar="FILE", group=IMAGES,
               help="A line for each class: adds an output `label` with that of the largest "
                    "score."),
)  # fmt: skip


def with_images(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, which the command takes as ``images``."""

    @wraps(command)
    def run(
        *arguments: Any, mean: Any, std: Any, scale: Any, bgr: Any, layout: Any,
        labels: str | None, **options: Any,
    ) -> Any:  # fmt: skip
        asked: dict[str, Any] = {
            "mean": mean, "std": std, "scale": scale, "bgr": bgr, "layout": layout,
        }  # fmt: skip
        if labels is not None:
            from serde.io.tables import read_lines

            asked["labels"] = read_lines(labels)
        images = {name: value for name, value in asked.items() if value}
        return command(*arguments, images=images or None, **options)

    for add in reversed(ADD):
        run = add(run)
    return run
