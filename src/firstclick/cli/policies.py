"""`firstclick policies`: the policies there are."""

from typing import Annotated

from typer import Option

from firstclick.cli.console import print_json, talk
from firstclick.cli.parameters import in_words, print_entry
from firstclick.registry import is_research, policy_classes


def policies(
    everything: Annotated[
        bool, Option("--all", help="List the research policies too: for comparisons, seldom for use.")
    ] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the policies, their parameters with defaults, and where they come from.

    \b
    Example:
      firstclick policies --all --json
    """
    known = policy_classes()
    listed = {name: cls for name, cls in known.items() if everything or not is_research(cls)}
    described = [
        in_words(cls, paper=cls.paper, needs_features=cls.needs_features, research=is_research(cls))
        for cls in listed.values()
    ]
    if json:
        print_json(described)
        return
    for entry in described:
        without = "with features or without" if listed[entry["name"]].takes_features else "no features"
        features = "needs features" if entry["needs_features"] else without
        print_entry(entry, f"{features}; {entry['paper']}" if entry["paper"] else features)
    if len(listed) < len(known):
        talk.print(f"{len(known) - len(listed)} research policies are not listed: firstclick policies --all")
