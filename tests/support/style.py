"""Check the words of the project against the style guide.

    python -m tests.support.style [paths]    print each hit as file:line: word -> replacement
    python -m tests.support.style --update   lower the numbers of tests/support/style_not_clean.txt
    python -m tests.support.style --moved    write that list again after files moved between folders

Identifiers, comments, docstrings, messages and pages of docs are read. A file must be clean, unless it or a
folder above it is in `style_not_clean.txt`. The numbers there only shrink.
"""

# ruff: noqa: E501 (patterns)

import re
import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tests.support import shrinking

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests/support/style_not_clean.txt"
HEADER = """\
# Files and folders that do not follow the style guide yet, with the number of hits in each.
# A file counts for its longest prefix in this list; a file without a prefix here must be clean.
# The numbers only shrink: python -m tests.support.style --update
"""

SUFFIXES = {".py", ".js", ".md", ".html", ".toml", ".yml", ".yaml"}
NOT_READ = (
    "tests/support/style.py",  # the rules
    "docs/reference/glossary.md",  # lists the synonyms
    "docs/assets/",
)
MESSAGES = "tests/doors/messages/"  # recorded refusals, one per line


class Rule(NamedTuple):
    where: str  # "name": identifiers; "prose": comments, strings, pages; "any": both
    pattern: str  # in lower case, from the start to the end of a word; a blank also matches a line break
    use: str
    bad: str
    good: str


RULES = (
    # People verbs and pronouns.
    Rule("any", r"told(?!=)", "reported, given, rejected", "'the policy was told of 3 items'",
         "'3 items were given'"),
    Rule("any", r"tells?", "reports, shows", "# The log tells how.", "# The log shows how."),
    Rule("any", r"said", "reported, stated", "said = report(slate)", "report = report_of(slate)"),
    Rule("any", r"heard", "received", "# The client heard an answer.", "# The client received an answer."),
    Rule("any", r"nobody|somebody|anybody|whoever", "the subject: the user, the caller, no item",
         "'nobody knows a typical one'", "'no item has features'"),
    Rule("prose", r"lets? (?:\w+ )?in", "accepts", "'a key lets them in'", "'the server accepts the key'"),
    Rule("any", r"judged?|judges|judging", "assess support, check", "'judge a target'",
         "'assess the support of a target'"),
    Rule("prose", r"(?:play|plays|played|playing) (?:out|the|a|an|all|each|both|every|policies|it|them)",
         "run, simulate", "# Play all policies.", "# Run all policies. A play button stays."),
    # Terms of the field.
    Rule("any", r"head[\s_-]?starts?", "warm start", "'a head start from a log'", "'a warm start from a log'"),
    Rule("any", r"own[\s_-]?parts?", "item effect", "'the own part of an item'", "'the item effect'"),
    Rule("name", r"fold(?:ed|ing)?(?!_of)", "replay", "fold(model, events)", "folds = 5; replay(model)"),
    Rule("prose",
         r"(?:fold|folds|folded|folding) (?:the|a|an|its|what|it|them|into|events)|are folded|is folded",
         "replay", "# Fold the log into it.", "# Replay the log; 5 folds."),
    Rule("prose",
         r"(?:draw|draws|drawn|drew|drawing) (?:it |them |slates |a slate |each slate |every slate )?(?:again|anew)",
         "reproduce", "'a slate is drawn again'", "'a slate is reproduced'"),
    Rule("any", r"redr(?:aw|aws|awn|awing|ew)", "reproduce", "redrawn = 3", "reproduced = 3"),
    Rule("any", r"made[\s_-]?up", "synthetic", "made_up_log()", "synthetic_log()"),
    Rule("any", r"crowds?", "environment, load clients", "Crowd(4)", "LoadClients(4)"),
    Rule("any", r"moving[\s_-]tastes?|tastes are others", "non-stationary, drift", "# Moving tastes",
         "# Non-stationary environments"),
    Rule("any", r"variety", "diversity", "'variety of topics'", "'diversity of topics'"),
    Rule("prose", r"loggers?(?! of uvicorn)(?<! uvicorn's logger)", "logging policy",
         "'the logger shows 3 items'", "'the logging policy shows 3 items'"),
    Rule("name",
         r"logger(?! = logging|\.(?:debug|info|warning|error|exception|propagate|handlers|level|set|add|remove|is))",
         "logging_policy", "run(logger='random')", "logger = logging.getLogger(NAME)"),
    Rule("prose", r"probability that is none|how likely (?:a|the) slate", "propensity",
         "# a probability that is none", "# an invalid propensity"),
    Rule("prose", r"cannot say", "insufficient support, not known", "'random: cannot say'",
         "'random: insufficient support'"),
    Rule("prose", r"worth only", "effective sample size", "'worth only 67 slates'",
         "'effective sample size 67'"),
    Rule("prose", r"(?<!math\.)(?<!np\.)floors?", "guardrail", "# The floor of 5%.",
         "# The guardrail; np.floor(x)"),
    Rule("name", r"(?<!math\.)(?<!np\.)floors?(?! ?\()", "guardrail", "self.floor = 3", "cells = np.floor"),
    Rule("prose", r"held[\s-]out lists?|list pages", "holdout", "'held out list'", "'holdout'"),
    Rule("any", r"stretch(?:es)?", "window", "stretch = 100", "window = 100"),
    Rule("prose", r"trying things out", "exploration rate", "'Still trying things out'", "'Exploration rate'"),
    Rule("prose", r"what this rests on|what (?:is not claimed|it rests on)", "assumptions, limitations",
         "'What this rests on'", "'Assumptions'"),
    Rule("prose", r"of best(?! \w)", "% of optimal", "'98% of best'",
         "'98% of optimal; the ids of best items'"),
    Rule("any", r"set[\s_-]?backs?", "log truncated, history diverged", "'the store was set back'",
         "'the log was truncated'"),
    Rule("any", r"own[\s_-]?logs?", "service log", "own_log(model)", "service_log(model)"),
    Rule("prose", r"time-outs?", "timeout", "'after the time-out'", "'after the timeout'"),
    Rule("any", r"no[\s_-]click[\s_-]times?", "timeout", "no_click_time = 3", "timeout = 3"),
    Rule("prose", r"(?:user|who|visitor|guest|they|he|she|client)s? (?:looks?|looked)(?! like| for| up)",
         "examine", "# Users look from the top.",
         "# Users examine positions from the top. It looks like a cascade."),
    Rule("prose",
         r"(?:is|are|was|were|be|been|not|never|nor|and|position) looked at|looks? (?:on|past|down|below|far|farther)"
         r"|looks and clicks|clicks and looks|of (?:its |the |all |their )?looks", "examined, examinations",
         "# Item 3 was looked at.", "# Item 3 was examined. Look at the log."),
    Rule("name", r"looks|looked(?:_at)?", "examined, examinations", "looks += 1", "examinations += 1"),
    Rule("prose",
         r"(?<!in )(?<!takes )(?<!take )(?<!took )(?<!in its )(?<!in the )(?<!decimal )places?(?! of | where| to |holder)",
         "position", "# The item of the first place.",
         "# The item of the first position, sorted in place, in the place of a file."),
    Rule("name", r"(?<!in_)places?", "position; path, folder", "for place in slate:", "in_place = True"),
    Rule("prose",
         r"(?:first|last|top|each|every|per|own|\d) slots?|slots? (?:\d|of (?:the|a) (?:slate|list))",
         "position", "# the first slot of a slate", "# the position; the page's slot"),
    Rule("prose", r"levels? of (?:its|their|his) own|item levels?|own levels?|level of the items",
         "intercept", "# They have a level of their own.", "# They have an intercept; the level of the log"),
    Rule("prose", r"[\d,]*\d pages|(?:share|shares|number|million|hundreds|thousands) (?:of )?pages"
         r"|pages? (?:a|per) (?:second|day|hour|minute|step|run)|(?:clicks|slates|loss|reward) (?:a|per) page",
         "impressions", "'1,000 pages, clicks a page'", "'1,000 impressions; pages of the docs'"),
    Rule("name",
         r"(?:n|first|last|per|all|many|few|total|max|min)_pages|pages(?:_a|_per|_of|_so|_left|_seen|_before|_after)",
         "impressions", "n_pages = 3", "n_impressions = 3; pages = list(docs)"),
    Rule("prose",
         r"[\d,]*\d visits|visits (?:a|per) (?:day|second|hour)|(?:share|number) of visits|(?:each|every|per) visit",
         "impressions", "'300 visits'", "'300 impressions'"),
    # Sentences.
    Rule("prose",
         r"(?<!there )(?<!here )(?:is|are|was|were) no (?!longer|more|less|different|better|worse|need|such|other|part)[a-z]+",
         "is not a", "'1 cell is no number'",
         "'1 cell is not a number; there is no file; it is no longer read'"),
    Rule("prose",
         r"(?:requests|slates|steps|clicks|items|impressions|events|things|reads|writes|done|appends|pages|calls"
         r"|updates|rows|seconds|numbers|ms|us|µs|mb|kb|throughput|lines|users|models|units|copies|puts|bytes"
         r"|slate|[\d.]+) an? (?:second|step|item|slate|day|week|minute|hour|request|page|event|user)",
         "per second, per step", "'200 requests a second'", "'200 requests per second, once a second'"),
    Rule("prose", r"\d %", "95%, without a blank", "'in 5 % of runs'", "'in 5% of runs', 5 % n"),
    Rule("any", r"anew", "again", "# The model is made anew.", "# The model is built again."),
    Rule("prose", r"(?<!\d )(?<!weeks )(?<!days )(?<!far )(?<!drifted )(?<!them )(?<!it )apart(?=[.,;:)])",
         "separately", "# Reported apart.", "# Far apart; 3 days apart."),
    Rule("prose", r"(?:beside|alone)(?=[.,;:)])", "next to it, only", "# for items alone.",
         "# only for items."),
    Rule("prose",
         r"the (?:more|less|larger|smaller|fewer|longer|later|earlier|higher|lower|older|closer|better)"
         r"[^.;:,\"]{1,60}, the (?:more|less|larger|smaller|fewer|longer|later|earlier|higher|lower|closer|better)",
         "increases with, decreases with", "# the larger the drift, the fewer clicks count",
         "# its weight decreases with the drift"),
    Rule("prose", r'"""(?:what|who|whatever|whoever|how|those|that which)(?= )',
         "begin with a verb (function) or a noun (module)", '"""What whoever appends is given."""',
         '"""Return the error of later appends. What follows is free."""'),
    # Names.
    Rule("name",
         r"class _?(?:(?!seed|feed|need|speed)[a-z]+ed|known|told|chosen|shown|given|drawn|seen|taken)(?=[(:\[])",
         "a noun: Request, Snapshot, Decision", "class Asked:", "class Request: ...; class Feed: ..."),
    Rule("name",
         r"def _?(?:(?!seed|feed|need|speed|embed|shed|exceed|proceed|succeed)[a-z]+ed|known|told|chosen|shown|given"
         r"|drawn|kept|made|sent|held|found|seen|taken|lost|gone|left|done|begun|cut)(?=\()",
         "a verb: decide, answer", "def decided(x): ...",
         "def decide(x): ...; def seed(x): ...; def is_closed(x): ..."),
    Rule("name",
         r"(?<![_.])(?:found|there|listed|one)(?= = | := |: [^=\n(]{1,40} = |, \w+ in | in )(?<!not in )",
         "the name of the thing: column, matches, policy", "found = matches(x)",
         "n_found = 3; matches = search(x)"),
)  # fmt: skip


def either(where):
    """Compile the rules of `where` into one pattern with a group for each, and return both."""
    rules = [rule for rule in RULES if rule.where in (where, "any")]
    patterns = (rule.pattern if where == "name" else rule.pattern.replace(" ", "[ \\n]") for rule in rules)
    return rules, re.compile(
        "(?<![a-z])(?:" + "|".join(f"({pattern})" for pattern in patterns) + ")(?![a-z])"
    )


NAMES, PROSE = either("name"), either("prose")
QUOTED = r"""[rbf]{0,2}(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
NOT_CODE = {
    ".py": re.compile(r'#[^\n]*|[rbf]{0,2}"""(?:[^\\]|\\.)*?"""|' + QUOTED, re.DOTALL),
    ".js": re.compile(r"//[^\n]*|/\*.*?\*/|`(?:[^`\\]|\\.)*`|" + QUOTED, re.DOTALL),
}
INDENT = re.compile(r" *\n[ \t*]*")


def parts(text, suffix):
    """Split a file in lower case into its code and its prose; both keep the line breaks of the file."""
    if suffix not in NOT_CODE:
        return "", INDENT.sub("\n", text)
    code, prose, end = [], [], 0
    for match in NOT_CODE[suffix].finditer(text):
        between, quoted = text[end : match.start()], match.group()
        end = match.end()
        breaks = "\n" * between.count("\n")
        code += [between, '""' + "\n" * quoted.count("\n")]
        # Strings and comments with nothing between them are one sentence.
        prose += [breaks if not between.strip() else f"\0{breaks}", sentence(quoted)]
    code.append(text[end:])
    return "".join(code), "".join(prose)


def sentence(quoted):
    """Return a comment, docstring or string without its marks; a docstring keeps the first ones."""
    if quoted[0] in "#/`":
        return INDENT.sub("\n", quoted.lstrip("#/*` ").rstrip())
    if quoted.endswith('"""'):
        return INDENT.sub("\n", quoted)
    return quoted.lstrip("rbf")[1:-1].strip()


def hits(text, suffix):
    """Yield line, words and rule of each text that breaks a rule."""
    for part, (rules, pattern) in zip(parts(text.lower(), suffix), (NAMES, PROSE), strict=True):
        for match in pattern.finditer(part):
            words = " ".join(match.group().split())
            yield part.count("\n", 0, match.start()) + 1, words, rules[match.lastindex - 1]


def is_read(name):
    if name.startswith(MESSAGES):
        return True
    return PurePosixPath(name).suffix in SUFFIXES and not name.startswith(NOT_READ)


def files_of_the_project():
    """List the files that git knows or would add, without those that are deleted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(name for name in set(names) if is_read(name) and (ROOT / name).is_file())


def check(names):
    """Return the hits of files by name."""
    return {
        name: sorted(
            hits((ROOT / name).read_text("utf-8"), PurePosixPath(name).suffix), key=lambda hit: hit[:2]
        )
        for name in names
    }


def not_clean():
    """Read the list: the number of hits that each file or folder may have."""
    return shrinking.read(LIST)


def prefix(name, listed):
    """Return the longest entry of the list that contains a file, or the file itself."""
    path = PurePosixPath(name)
    return next((str(above) for above in (path, *path.parents) if str(above) in listed), name)


def counts(by_file, listed):
    """Count hits by entry of the list; files without an entry count for themselves."""
    total = Counter()
    for name, of_file in by_file.items():
        total[prefix(name, listed)] += len(of_file)
    return +total


def count():
    return counts(check(files_of_the_project()), not_clean())


def main():
    options = shrinking.parser(__doc__).parse_args()
    if shrinking.rewrite(options, LIST, HEADER, count()):
        return
    paths = [path.removeprefix("./").rstrip("/") for path in options.paths]
    for name, of_file in check(files_of_the_project()).items():
        if not paths or any(name == path or name.startswith(f"{path}/") for path in paths):
            for line, words, rule in of_file:
                print(f"{name}:{line}: {words} -> {rule.use}")


if __name__ == "__main__":
    main()
