"""Settings of all tests."""

import os

from hypothesis import settings

# The first call of a kernel compiles: no deadline. In CI the examples are the same each time.
settings.register_profile("firstclick", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("firstclick")
