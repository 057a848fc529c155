"""Compiled functions: pure, without state of their own, and never drawing a random number."""
