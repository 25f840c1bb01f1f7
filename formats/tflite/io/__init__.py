"""Files in flatbuffers of TensorFlow Lite's schema."""
