"""Files of Relay: what a file holds, parameter files, and which of them belongs to a module."""
