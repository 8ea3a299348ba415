"""The version of the program. Nothing else states it."""

VERSION = "0.1.0"
