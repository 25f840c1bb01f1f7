"""Relay's text form: lexer, parser, printer."""
