"""Conformance: what becomes of every known model in every target, recorded as data.

``python -m conformance`` runs the matrix (source × target) and keeps the outcome of each case under
``conformance/results``; the test suite compares a sample with it.
"""
