"""Files: written whole, read with clear errors, as text, rows or arrays."""
