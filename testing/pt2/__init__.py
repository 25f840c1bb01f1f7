"""What tests and sweeps of exported programs share."""
