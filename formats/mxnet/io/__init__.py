"""MXNet's files: symbol JSON, parameter files, archives."""
