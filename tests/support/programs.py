"""Programs of the system that some tests need."""

import os
import shutil

import pytest


def program(*names, advice="install it"):
    """Return the path of a program. Without it a test is skipped, and fails in CI."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{names[0]} is not installed: {advice}")
    return path
