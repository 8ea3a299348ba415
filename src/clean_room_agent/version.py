"""The version of the program: in no other place."""

VERSION = "0.1.0"
