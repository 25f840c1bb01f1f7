"""Programs that read ONNX files, and the forms each of them supports."""
