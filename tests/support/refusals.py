"""A refusal is data: its class, its argument and the form of its sentence are asserted, its words recorded.

The words are in `tests/doors/messages/*.txt`, one line for each refusal. A test compares them; `pytest
--update-messages` writes them again, for a reviewer to read as a diff.
"""

import re
from pathlib import Path

import pytest

from firstclick import FirstclickError
from tests.support.doors import status_of

FOLDER = Path(__file__).parents[1] / "doors" / "messages"
LONGEST = 400


class Messages:
    """The sentences of one table of refusals at one door."""

    def __init__(self, update):
        self.update = update
        self.lines, self.problems = [], []

    def expect(self, call, argument, status="malformed", model=""):
        """Note the refusal of `call`, and whatever is wrong with it."""
        try:
            call()
        except FirstclickError as error:
            named = re.sub(rf"\b{re.escape(model)}\b", "shop", str(error)) if model else str(error)
            self.lines.append(f"{type(error).__name__}: {named}")
            self.problems += problems_of(error, argument, status)
        else:
            self.problems.append(f"{argument}: not refused")

    def check(self, name):
        """Compare the sentences with those of the file of this name."""
        file, text = FOLDER / f"{name}.txt", "".join(f"{line}\n" for line in self.lines)
        if self.update:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert not self.problems, "\n".join(self.problems)
        written = file.read_text(encoding="utf-8") if file.exists() else ""
        assert text == written, f"write {file.name} again by make messages, and read the diff"


def problems_of(error, argument, status):
    """Yield a sentence for each fault of this refusal."""
    sentence = str(error)
    # Of a body the argument may be a path: candidates[0], put[0].features.
    if argument not in (re.findall(r"[a-z_]+", error.argument) or [""]):
        yield f"{argument}: {error.argument!r} is named by {sentence!r}"
    if status_of(error) != status:
        yield f"{argument}: {status_of(error)}, not {status}: {sentence!r}"
    begins = sentence.removeprefix(f"{error.owner}: ").startswith(error.argument)
    if not begins or "\n" in sentence or len(sentence) >= LONGEST:
        yield f"{argument}: not one short sentence that begins with the argument: {sentence!r}"


def check_refused(call, argument, status="malformed"):
    """Check a single refusal whose words are of no interest."""
    with pytest.raises(FirstclickError) as caught:
        call()
    assert not list(problems_of(caught.value, argument, status))
