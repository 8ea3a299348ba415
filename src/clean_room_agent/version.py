"""The version of the program, stated only here."""

VERSION = "0.1.0"
