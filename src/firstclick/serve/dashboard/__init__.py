"""The dashboard: what it shows, and its page."""
