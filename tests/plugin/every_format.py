"""The formats that are installed, and those of the plug-ins beside this file."""

from serde_slate import FORMAT as SLATE
from serde_toy import FORMAT as TOY

from serde.plugins import installed_formats

EVERY_FORMAT = [*installed_formats(), TOY, SLATE]
