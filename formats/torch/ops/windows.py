"""Powers, padding and resizing in forms that PyTorch computes alike."""

from __future__ import annotations

from serde.legalize.forms.pytorch import add_pytorch_rules

from ..target import legalizations

add_pytorch_rules(legalizations)
