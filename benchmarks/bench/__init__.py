"""How fast the policies are, measured against all that they could be compared with."""
