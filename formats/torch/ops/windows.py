"""Windows, padding and resizing in forms that PyTorch computes alike."""

from __future__ import annotations

from serde.legalize.forms.pytorch import legalize_windows

from ..target import legalizations

legalize_windows(legalizations)
