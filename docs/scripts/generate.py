"""Write the pages that follow from the code.

    python docs/scripts/generate.py

COMMITTED pages are kept in git: a test compares them with what this writes. BUILT pages are not:
mkdocs writes them before each build.
"""

import csv
import inspect
import json
import re
from collections.abc import Callable
from typing import Any

from api_pages import api_pages
from http_page import http_page
from json_page import json_page
from pages import DOCS, NOTICE, docstring, parameters
from policy_pages import POLICIES, core_page, guide_lines, policy_pages
from typer.main import get_command
from typer.testing import CliRunner

from firstclick import world_classes
from firstclick.cli import app
from firstclick.data.sources import source_classes
from firstclick.policies.base import RESTRICTIONS, Policy
from firstclick.registry import make_policy
from firstclick.studies.guide.page import core_of, guide_table
from firstclick.testing import CHECKS, checks_of

CAFE = DOCS.parent / "src" / "firstclick" / "serve" / "cafe.csv"
TABLE_BEGINS = "<!-- The table: written by docs/scripts/generate.py from guide.csv. -->\n"
TABLE_ENDS = "<!-- The end of the table. -->\n"


def refusals_section() -> list[str]:
    """What a request may not say, and to which policies."""
    variants = {name: cls() for name, cls in POLICIES.items()}
    variants["top-rank:pairs=shown"] = make_policy("top-rank:pairs=shown")
    lines = [
        "These policies compare the items of a slate with one another, and with items that were not shown. "
        "That is right only if all of them had the same chances of a click. Feedback does not tell what the "
        "request allowed, so a `Ranker` and the service refuse a request that gives them other chances. Its "
        "message says what to do instead. A log that has such slates already is folded as it is.",
        "",
        f"| policy | {' | '.join(f'`{field}`' for field in RESTRICTIONS)} |",
        f"|---|{'---|' * len(RESTRICTIONS)}",
    ]
    for name, policy in sorted(variants.items()):
        if policy.misreads:
            cells = ["refused" if field in policy.misreads else "taken" for field in RESTRICTIONS]
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return [
        *lines,
        "",
        "All take a smaller `k`: the items compared are shown in random order, so a shorter slate is as "
        "fair to one as to the other. All other policies take every request: they learn from each "
        "examined item by itself (its own clicks, its features, its position), whatever else was "
        "allowed. Simulations have no such requests.",
        "",
        "Withdrawn and unavailable items are not refused, because a sold-out item has to disappear. The "
        "log says when they went. `top-rank` and `bubble-rank` do not compare them while they are gone. "
        "`batch-rank` and `recur-rank` decide nothing about a batch that lacks an item, but do count the"
        " clicks that the others get in its place: with items that come and go every day, take another "
        "policy.",
        "",
    ]


def checks_section() -> list[str]:
    """Every check, who skips it, and why."""
    lines = [
        "`firstclick.testing.check_policy` runs these; a policy that declares it cannot do something skips "
        "the check of it, and says why.",
        "",
        "| check | skipped by |",
        "|---|---|",
    ]
    skips = {name: {check.name for check, reason in checks_of(name) if reason} for name in POLICIES}
    for check in CHECKS:
        skipped = [name for name in skips if check.name in skips[name]]
        lines.append(f"| {check.name.replace('_', ' ')} | {', '.join(f'`{name}`' for name in skipped)} |")
    # What one comment says of several capabilities is said once.
    reasons: dict[tuple[str, str], list[str]] = {}
    for name in skips:
        for capability in {need: None for check in CHECKS for need in check.needs}:
            if not getattr(POLICIES[name], capability):
                reasons.setdefault((name, why_not(POLICIES[name], capability)), []).append(f"`{capability}`")
    policies: dict[tuple[str, str], list[str]] = {}
    for (name, why), capabilities in reasons.items():
        policies.setdefault((" and ".join(capabilities), why), []).append(f"`{name}`")
    lines += ["", "Why:", ""]
    lines += [f"- Not {what}: {', '.join(names)}. {why}" for (what, why), names in sorted(policies.items())]
    return [*lines, ""]


def why_not(cls: type[Policy], capability: str) -> str:
    """The comment over the line in which the class, or one it derives from, declares that it cannot."""
    declaring = next(base for base in cls.__mro__ if capability in vars(base))
    if declaring is Policy:
        # The capabilities that nobody has unless it says so.
        if capability == "corrects":
            return "What one slate has taught is not taken back: its `unlearn` is not written."
        assert capability == "takes_features", f"{cls.__name__}: {capability}"
        assert not cls.needs_features, f"{cls.__name__} declares no reason for takes_features = False"
        return "It looks at no features."
    above, _, _ = inspect.getsource(declaring).partition(f"    {capability}: ClassVar[bool] = False")
    lines = above.rstrip().splitlines()
    while re.fullmatch(r" +\w+: ClassVar\[bool\] = \w+", lines[-1]):
        lines.pop()
    comment: list[str] = []
    while lines[-1].lstrip().startswith("# "):
        comment.insert(0, lines.pop().strip().removeprefix("# "))
    assert comment, f"{declaring.__name__} needs a comment that says why {capability} = False"
    return " ".join(comment)


def guide_page() -> str:
    """The guide as it is, with the table of the core that its results give."""
    page = (DOCS / "guide" / "which_policy.md").read_text(encoding="utf-8")
    page, found = re.subn(
        f"{TABLE_BEGINS}.*?{TABLE_ENDS}",
        lambda _: "\n".join([TABLE_BEGINS, *guide_table(core_of(guide_lines()))]) + TABLE_ENDS,
        page,
        flags=re.DOTALL,
    )
    assert found == 1, "which_policy.md has lost the place of its table"
    return page


def sources_page() -> str:
    lines = [
        NOTICE,
        "# Sources",
        "",
        "A source reads a data set. Write it as `name` or `name:param=value,...` in `firstclick data "
        "describe`, in the TOML file of an experiment, and in Python (`firstclick.data.sources.make_source`)."
        ' In TOML it may also be a table, for names with commas: `{source = "table", user = "a,b"}`. All '
        "sources give `Interactions`. An item attracts a user if any of the user's rows says so. `--data` "
        "names the folder of the files or its parent; for `table` it names the file.",
        "",
    ]
    for name, cls in source_classes().items():
        if not cls.__module__.startswith("firstclick."):
            continue  # a plug-in's, or a test's
        files = "made up from a seed, needs no files" if cls.synthetic else f"files: {cls().wanted()}"
        lines += [f"## `{name}`", "", *docstring(cls), f"*{files}.*", "", *parameters(cls)]
    return "\n".join(lines)


def items_script() -> str:
    """The items of the playground as a script: a page opened from a folder cannot read other files."""
    with CAFE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name not in ("id", "name", "group")]
    items = [{"name": row["name"], "features": [float(row[name]) for name in columns]} for row in rows]
    return f"const ITEMS = {json.dumps(items, ensure_ascii=False)};\n"


def command_line_page() -> str:
    lines = [NOTICE, "# Command line", ""]
    lines += [
        "Results go to stdout, messages and progress to stderr.",
        "",
        "| exit code | meaning |",
        "|---|---|",
        "| 0 | success |",
        "| 1 | the work failed, or `audit` found a difference |",
        "| 2 | wrong arguments or input, explained in one line on stderr |",
        "| 3 | `evaluate run`: the log cannot judge one of the policies |",
        "| 130 | interrupted by Ctrl-C |",
        "",
    ]
    for command in ("", *COMMANDS):
        lines += [
            f"## `firstclick{' ' + command if command else ''}`",
            "",
            "```",
            help_of(command),
            "```",
            "",
        ]
    return "\n".join(lines)


def commands_of(group: Any, before: str = "") -> list[str]:
    """All commands, each group followed by its own."""
    names = []
    for name, command in group.commands.items():
        if not command.hidden:
            names += (
                [before + name, *commands_of(command, f"{before}{name} ")]
                if hasattr(command, "commands")
                else [before + name]
            )
    return names


def help_of(command: str) -> str:
    """What `--help` prints on a terminal of 100 columns."""
    words = [*command.split(), "--help"]
    done = CliRunner().invoke(app, words, prog_name="firstclick", terminal_width=98)
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def worlds_page() -> str:
    lines = [
        NOTICE,
        "# Worlds",
        "",
        "A world simulates users who answer slates with clicks. Write it as `name` or `name:param=value,...` "
        "on the command line (`--world`) and in Python (`make_world`). Your own data is a world too: "
        "`--interactions ratings.csv`, or `firstclick.data`.",
        "",
    ]
    for name, cls in world_classes().items():
        if cls.__module__.startswith("firstclick."):
            lines += [f"## `{name}`", "", *docstring(cls), *parameters(cls)]
    return "\n".join(lines)


COMMANDS = commands_of(get_command(app))


def policies_page() -> str:
    return core_page(refusals_section(), checks_section())


COMMITTED: dict[str, Callable[[], str]] = {
    "guide/which_policy.md": guide_page,
    "reference/command_line.md": command_line_page,
    "reference/http.md": http_page,
    "reference/json.md": json_page,
}
BUILT: dict[str, Callable[[], str]] = {
    "assets/playground/items.js": items_script,
    "reference/policies/index.md": policies_page,
    "reference/sources.md": sources_page,
    "reference/worlds.md": worlds_page,
    **policy_pages(),
    **api_pages(),
}


def write(pages: dict[str, Callable[[], str]]) -> None:
    """Write pages below docs. A page that is already the same is left alone."""
    for name, page in pages.items():
        file, text = DOCS / name, page()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(COMMITTED | BUILT)
