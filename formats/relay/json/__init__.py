"""Relay's JSON form: node tables of ``tvm.ir.save_json``."""
