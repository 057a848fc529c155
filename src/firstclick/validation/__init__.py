"""Checks at the doors: numbers, arrays, ranges, and how a wrong value is quoted."""
