"""Frames: MXNet's networks as files hold them, read and compared with live MXNet."""
