"""The ``serde`` command."""

import serde

if not hasattr(serde, "_PUBLIC"):  # other projects' packages have the import name, too
    raise SystemExit(
        "another package has replaced files of serde: pip uninstall serde pyserde, then "
        "pip install --force-reinstall serde-hub"
    )
