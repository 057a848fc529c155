"""An extension of griffe: examples in docstrings become blocks of code; Markdown takes >>> for quotations."""

import re
from typing import Any

from griffe import Extension, Object

# A line with >>>, and whatever follows it up to an empty line.
EXAMPLE = re.compile(r"^(>>> .*(?:\n.+)*)", re.MULTILINE)


class DoctestBlocks(Extension):
    """Put fences around examples."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\1\n```", obj.docstring.value)
