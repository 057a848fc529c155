"""Answers from the writer's thread to the event loop, many in one go."""

import asyncio
from collections import deque
from typing import Any


class Mailbox:
    """Waking the loop costs more than an answer does: it is woken once for all that lies in the box."""

    def __init__(self) -> None:
        self._letters: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._awake = False

    def post(self, future: "asyncio.Future[Any]", result: Any) -> None:
        """Have the future's loop set this result; from any thread."""
        self._letters.append((future, result))
        # No lock: the letter lies in the box before the flag is read, and `_empty` clears the flag before
        # it looks into the box. Either it sees the letter, or we see the cleared flag and wake it again.
        if not self._awake:
            self._awake = True
            try:
                future.get_loop().call_soon_threadsafe(self._empty)
            except RuntimeError:
                # The loop is closed, and with it everyone who waited. The writer has to go on.
                self._awake = False

    def _empty(self) -> None:
        self._awake = False
        while self._letters:
            future, result = self._letters.popleft()
            if not future.done():
                future.set_result(result)
