"""Load for a server, and what it does under it."""
