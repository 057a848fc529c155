"""The version, apart from the package so that every layer can read it."""

__version__ = "0.2.0"
