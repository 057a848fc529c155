"""`firstclick policies`: the learners there are."""

from typing import Annotated

from typer import Option

from firstclick.cli.console import print_json
from firstclick.cli.parameters import in_words, print_entry
from firstclick.registry import policy_classes


def policies(json: Annotated[bool, Option("--json", help="Print JSON.")] = False) -> None:
    """List the learners, their parameters with defaults, and where they come from.

    \b
    Example:
      firstclick policies --json
    """
    described = [
        in_words(cls, paper=cls.paper, needs_features=cls.needs_features) for cls in policy_classes().values()
    ]
    if json:
        print_json(described)
        return
    for entry in described:
        features = "needs features" if entry["needs_features"] else "no features"
        print_entry(entry, f"{features}; {entry['paper']}" if entry["paper"] else features)
