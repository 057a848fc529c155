"""Helpers shared by all tests: one shop, the doors to it, slow references."""
