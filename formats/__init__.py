"""File formats: each maps files to graphs of its own vocabulary, and that to the IR and back."""
