"""Names give policies and worlds: ours, those of plug-ins, and those just typed."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from firstclick import make_policy, make_world, policy_classes, world_classes
from firstclick.errors import InvalidInput, UnknownName
from firstclick.kernels.compiling import cache_root

OURS = [
    "batch-rank", "bubble-rank", "c3-ucb", "cascade-ducb", "cascade-glr-ucb", "cascade-hybrid",
    "cascade-kl-ucb", "cascade-lin-ts", "cascade-lin-ucb", "cascade-lsb", "cascade-mixed", "cascade-swucb",
    "cascade-ts", "cascade-ucb-v", "cascade-ucb1", "context-lin-ts", "dcm-kl-ucb", "dcm-lin-ts",
    "dcm-lin-ucb", "discounted-lin-ts", "discounted-lin-ucb", "lin-ts-cascade", "logistic-ts", "pbm-pie",
    "pbm-ucb", "random", "ranked-lin-ts", "recur-rank", "segment-lin-ts", "top-rank", "ts-cascade",
    "vac2-ucb",
]  # fmt: skip
WORLDS = [
    "bernoulli", "blb", "drift", "fitted", "linear", "logistic", "long-tail", "partly", "shop", "switch",
    "topics", "types", "vectors",
]  # fmt: skip


def test_our_policies_and_worlds_are_there_by_name_in_order():
    policies = policy_classes()
    assert [name for name, cls in policies.items() if cls.__module__.startswith("firstclick.")] == OURS
    assert list(world_classes()) == WORLDS
    assert all(cls.name == name for name, cls in {**policies, **world_classes()}.items())
    with pytest.raises(UnknownName, match=r"^world 'bernouli' is unknown; did you mean 'bernoulli'\?$"):
        make_world("bernouli:attractions=0.5")


def test_spec_gives_the_policy_or_the_world_it_describes():
    UCB1, BLB = policy_classes()["cascade-ucb1"], world_classes()["blb"]
    assert make_policy("cascade-ucb1:radius=0.5,start=first") == UCB1(radius=0.5, start="first")
    assert make_policy(" cascade-ucb1 : radius = 0.5 ") == UCB1(radius=0.5)
    assert make_world("blb:n_items=9,k=3") == BLB(n_items=9, k=3)
    policy = UCB1(radius=3)
    assert make_policy(policy) is policy
    assert make_policy("cascade-ucb1:") == UCB1()
    for spec in ("radius=2,", ",radius=2", "radius=2,,"):  # Commas too many.
        assert make_policy(f"cascade-ucb1:{spec}") == UCB1(radius=2)


WITHOUT_VALUE = "expected NAME:param=value,..., got '{}' without a value"


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ("Random", UnknownName, "policy 'Random' is unknown; did you mean 'random'?"),
        ("", UnknownName, "policy '' is unknown; known are {known}"),
        ("zzz:x=1", UnknownName, "policy 'zzz' is unknown; known are {known}"),
        ("cascade-ucb1:radius=", InvalidInput, WITHOUT_VALUE.format("radius=")),
        ("cascade-ucb1:radius:2", InvalidInput, WITHOUT_VALUE.format("radius:2")),
        ("cascade-ucb1:radius=1, radius=2", InvalidInput, "radius is given twice"),
        ("cascade-ucb1:radius=1=2", InvalidInput, "cascade-ucb1: radius must be above 0, got '1=2'"),
        (dict, InvalidInput, "got the class dict"),
        (None, InvalidInput, "policy must be 'name:param=value,...' or a Policy object, got None"),
        (["random"], InvalidInput, "got ['random']"),
    ],
)
def test_odd_spec_is_refused(spec, error, words):
    with pytest.raises(error) as caught:
        make_policy(spec)
    # With those that other tests of this process have declared.
    known = sorted(policy_classes())
    shown = f"{', '.join(known[:14])} and {len(known) - 14} more"
    assert str(caught.value).endswith(words.replace("{known}", shown))


POLICY = '''
from typing import NamedTuple

import numpy as np

from firstclick import Policy, param


class LastFirstState(NamedTuple):
    learned: np.ndarray


class LastFirst(Policy):
    """Show the items from the end of the catalog."""

    name = "last-first"
    skipped: int = param(0, "items to leave out at the end", at_least=0)

    def initial_state(self, n_items, n_features, k):
        return LastFirstState(np.zeros(1, np.int64))

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):
        for n in range(len(slate)):
            slate[n] = len(catalog.labels) - 1 - numbers.skipped - n
        return len(slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):
        state.learned[0] += examined
'''

# Items attract for certain or never, so that the reward tells which were shown.
PLAY = """
from firstclick import simulate
from firstclick.kernels.compiling import compiled
from firstclick.experiments.loop import play
from firstclick.worlds import BernoulliWorld

def rewards(policies, **options):
    world = BernoulliWorld([1, 0, 0, 0, 0, 0, 1])
    played = simulate(policies, world, k=2, steps=50, runs=2, seed=4, **options)
    return [float(result.reward[:, -1].mean()) for result in played.results]

def cache_hits(policy):
    stats = compiled(play, policy).stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
"""


def python(folder, *arguments, code=None):
    """What Python prints, with the plug-ins in `folder` installed and a kernel cache of its own. Kernels that
    are compiled already are taken from the cache of the other tests."""
    cache = folder / "cache"
    if not cache.exists():
        cache.mkdir()
        for compiled in cache_root().glob("*"):
            (cache / compiled.name).symlink_to(compiled.resolve())
    environment = {
        **os.environ,
        # The tests may have been started with relative folders.
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), *map(os.path.abspath, filter(None, sys.path))]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "FIRSTCLICK_CACHE_DIR": str(cache),
    }
    command = [sys.executable, *(arguments if code is None else ["-c", code])]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(folder, source):
    site = folder / "site"
    about = site / "lastfirst-1.0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lastfirst\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[firstclick.plugins]\nlastfirst = lastfirst\n")
    (site / "lastfirst.py").write_text(source)


@pytest.mark.long
def test_plug_in_is_found_played_cached_edited_and_removed(tmp_path):
    install(tmp_path, POLICY)
    listed = json.loads(python(tmp_path, "-m", "firstclick", "policies", "--all", "--json"))
    assert [entry["name"] for entry in listed] == sorted([*OURS, "last-first"])
    once = PLAY + "from lastfirst import LastFirst\nprint(rewards(['last-first']), cache_hits(LastFirst))"
    assert python(tmp_path, code=once) == "[50.0] (0, 1)\n"
    assert python(tmp_path, code=once) == "[50.0] (1, 0)\n"

    # Two processes play it; skipping the attractive last item and its neighbours earns nothing.
    both = PLAY + "if __name__ == '__main__': print(rewards(['last-first', 'last-first:skipped=1'], jobs=2))"
    assert python(tmp_path, code=both) == "[50.0, 0.0]\n"

    edited = POLICY.replace("len(catalog.labels) - 1 - numbers.skipped - n", "numbers.skipped + 1 + n")
    install(tmp_path, edited)
    assert python(tmp_path, code=once) == "[0.0] (0, 1)\n"
    assert len(list((tmp_path / "cache").glob("lastfirst.LastFirst-*"))) == 2

    shutil.rmtree(tmp_path / "site")
    ours = PLAY + "import firstclick\nprint(*firstclick.policy_classes())\nprint(rewards(['random'])[0] < 50)"
    assert python(tmp_path, code=ours) == " ".join(OURS) + "\nTrue\n"


def test_plug_in_that_cannot_be_loaded_is_named_in_one_line(tmp_path):
    install(tmp_path, "import nothing_of_this_name\n")
    say = "import firstclick\ntry: firstclick.policy_classes()\nexcept firstclick.WorkFailed as e: print(e)"
    assert python(tmp_path, code=say) == (
        "plug-in 'lastfirst' (lastfirst) cannot be loaded: No module named 'nothing_of_this_name'; "
        "mend it or uninstall it\n"
    )


@pytest.mark.parametrize("before", ["", "import firstclick; firstclick.policy_classes()\n"])
def test_of_two_policies_of_a_name_yours_counts_and_then_the_later(tmp_path, before):
    """Ours are imported when a name is first asked for, before or after a class is typed in a notebook."""
    mine = POLICY.replace('"last-first"', '"cascade-ucb1"')
    again = mine.replace("skipped: int = param(0", "skipped: int = param(8")
    ask = "from firstclick import make_policy\nprint(make_policy('cascade-ucb1'))\n"
    printed = python(tmp_path, code=before + mine + ask + again + ask)
    assert printed == "LastFirst(skipped=0)\nLastFirst(skipped=8)\n"


@pytest.mark.long
def test_policy_typed_at_the_prompt_or_in_a_function_plays_here_and_is_not_cached(tmp_path):
    in_function = "def make():\n" + textwrap.indent(POLICY, "    ") + "    return LastFirst(skipped=1)\n"
    typed = POLICY + in_function.replace("last-first", "in-function") + PLAY
    assert python(tmp_path, code=typed + "print(rewards([LastFirst(), make()], jobs=2))") == "[50.0, 0.0]\n"
    # What all learners share is kept, and nothing of these.
    new = [path for path in (tmp_path / "cache").iterdir() if not path.is_symlink()]
    assert {path.name.partition(".")[0] for path in new} <= {"kernels"}


@pytest.mark.long
def test_policy_of_a_script_plays_in_two_processes(tmp_path):
    script = tmp_path / "mine.py"
    play = "if __name__ == '__main__':\n    print(rewards([LastFirst(), LastFirst(skipped=1)], jobs=2))"
    script.write_text(POLICY + PLAY + play)
    assert python(tmp_path, str(script)) == "[50.0, 0.0]\n"
    assert not list((tmp_path / "cache").glob("__main__*"))
