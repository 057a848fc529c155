"""Tests of firstclick. `support` has what they share."""
