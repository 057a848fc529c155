"""The exact search: the best items without looking at every one."""
