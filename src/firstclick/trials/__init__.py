"""Trials: who sees which arm, what is counted, and the answer, valid whenever you look."""
