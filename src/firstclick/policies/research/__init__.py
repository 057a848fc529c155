"""Policies of papers that we keep for comparison. The ones to use are in the folder above."""
