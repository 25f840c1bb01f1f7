"""Files: what they hold, tensor bytes, and atomic writes."""
