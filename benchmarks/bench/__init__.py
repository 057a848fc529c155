"""How fast the learners are, measured against all that they could be compared with."""
