"""Archives made of files in memory."""

from __future__ import annotations

import io
import tarfile
import zipfile

KINDS = ("zip", "stored", "tar", "tar.gz")


def pack(files: dict[str, bytes], kind: str) -> bytes:
    """An archive: ``zip``, ``stored`` (a zip that packs nothing), ``tar`` or ``tar.gz``."""
    out = io.BytesIO()
    if kind in ("zip", "stored"):
        packing = zipfile.ZIP_DEFLATED if kind == "zip" else zipfile.ZIP_STORED
        with zipfile.ZipFile(out, "w", packing) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w:gz" if kind == "tar.gz" else "w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
