"""The ``serde`` command."""
