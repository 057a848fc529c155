"""Clients of a running service. They import neither the server nor Numba."""

from firstclick.extras import needed_by

with needed_by("the client"):
    from firstclick.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
