"""ONNX for OpenVINO's processor plug-in."""

from __future__ import annotations

from .target import OPENVINO

__all__ = ["OPENVINO"]
