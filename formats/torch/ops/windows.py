"""Windows, padding and resizing in forms that PyTorch computes alike."""

from __future__ import annotations

from serde.formats.onnx.consumers.onnx2torch.windows import legalize_windows

from ..target import legalizations

legalize_windows(legalizations)
