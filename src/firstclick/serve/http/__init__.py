"""The service behind HTTP: one table of routes, from which matching, access, bodies and OpenAPI follow."""
