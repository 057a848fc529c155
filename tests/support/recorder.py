"""Record what policies, rankers and simulations give, bit for bit, and compare it with the records.

    python -m tests.support.recorder                     compare everything with the records
    python -m tests.support.recorder policies calls      compare two parts
    python -m tests.support.recorder --write             record again

Only public names are used, so the same recorder runs on the code of any commit. Bits depend on the versions
of NumPy, Numba and LLVM and on the kind of machine; calls and movielens use LAPACK, which has code for each
processor. On another machine record again from the commit before yours:

    git worktree add --detach ../before HEAD~1
    PYTHONPATH=../before/src python -m tests.support.recorder --write
"""

import argparse
import csv
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import llvmlite.binding
import numba
import numpy as np

import firstclick
from firstclick import Catalog, FirstclickError, Ranker, policy_classes, simulate

FOLDER = pathlib.Path(__file__).with_name("records")
STEPS, K, ITEMS, TYPES = 3000, 5, 40, 4
CHECKPOINTS = (10, 100, 1000, STEPS)
# Parts that use LAPACK, to merge rankers and to compute features. Others had equal bits on znver4 and znver5.
BY_PROCESSOR = ("calls", "movielens")


def digest(array):
    """The dtype, shape and hash of an array."""
    array = np.ascontiguousarray(array)
    shape = "x".join(map(str, array.shape))
    return f"{array.dtype} {shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


def state_of(ranker):
    """The hash of each array of the policy's state."""
    return {name: digest(array) for name, array in ranker.state._asdict().items()}


def made_here():
    """Return what bits depend on, and the commit that is recorded."""
    cpu = pathlib.Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    name = next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )
    vectors = " with avx512f" if llvmlite.binding.get_host_cpu_features().get("avx512f") else ""
    source = pathlib.Path(firstclick.__file__).parent
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=source, capture_output=True, text=True
    )
    return {
        "machine": platform.machine() + vectors,
        "processor": f"{name} ({llvmlite.binding.get_host_cpu_name()})",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvm": ".".join(map(str, llvmlite.binding.llvm_version_info)),
        "commit": commit.stdout.strip(),
    }


def comparable(part, records):
    """Whether the records of this part must be equal here, bit for bit."""
    here, other = made_here(), records["made"]
    decisive = ["machine", "numpy", "numba", "llvm"] + ["processor"] * (part in BY_PROCESSOR)
    return all(here[name] == other[name] for name in decisive)


# Policies: every one for 3,000 steps in three environments, through a ranker.

# Beside the defaults of all policies. `plain` is a catalog without features.
VARIANTS = (
    "c3-ucb:context=4", "cascade-hybrid:topics=3", "cascade-kl-ucb:start=pessimistic",
    "cascade-lin-ucb:c=theory,horizon=3000", "cascade-mixed plain", "cascade-ucb1:start=first",
    "context-lin-ts:context=4", "context-lin-ts:context=4,combine=concatenation", "dcm-lin-ucb:stop=learned",
    "discounted-lin-ucb:detector=20", "segment-lin-ts:segments=4", "vac2-ucb:variance=0.1",
)  # fmt: skip


def specs():
    """The policies that are recorded; a test may have defined others."""
    ours = [name for name, one in policy_classes().items() if one.__module__.startswith("firstclick.")]
    return sorted([*ours, *VARIANTS])


def items(count=ITEMS):
    """Ids, features and groups of a catalog."""
    features = np.random.default_rng(1).random((count, 6)) ** 3
    return [f"i{number}" for number in range(count)], features, [f"g{number % 4}" for number in range(count)]


def environment(name):
    """Attraction probabilities by step, one row per user type or period, and how users examine positions.

    steady: all users are equal and click once. types: four types, several clicks. switch: probabilities
    change every 500 steps, and clicks depend on the position.
    """
    draw = np.random.default_rng([2, *name.encode()])
    rates = draw.random((TYPES, 6)) ** 2 @ items()[1].T
    rates *= 0.4 / rates.max(axis=1, keepdims=True)
    steps = np.arange(STEPS)
    row = {"steady": 0 * steps, "types": draw.integers(TYPES, size=STEPS), "switch": steps // 500 % TYPES}[
        name
    ]
    return rates, row, draw.random((STEPS, K)), draw.random((STEPS, K))


def play(spec, name):
    """Slates and the state of a policy in an environment."""
    spec, _, plain = spec.partition(" ")
    ids, features, groups = items()
    ranker = Ranker(Catalog(ids, None if plain else features, groups=groups), k=K, policy=spec, seed=3)
    numbers = {item: number for number, item in enumerate(ids)}
    rates, types, attracts, examines = environment(name)
    slates = np.empty((STEPS, K), np.int64)
    contexts = {"context": lambda type: np.eye(TYPES)[type], "segments": lambda type: [float(type)]}
    context_of = contexts.get(spec.partition(":")[2].partition("=")[0])
    for step in range(STEPS):
        slate = ranker.recommend(context=context_of and context_of(types[step]))
        slates[step] = [numbers[item] for item in slate.items]
        attracted = attracts[step] < rates[types[step], slates[step]]
        if name == "steady":
            clicks = np.flatnonzero(attracted)[:1]
        elif name == "types":
            leaves = np.flatnonzero(attracted & (examines[step] < 0.6))
            clicks = np.flatnonzero(attracted[: leaves[0] + 1] if len(leaves) else attracted)
        else:
            clicks = np.flatnonzero(attracted & (examines[step] < 1 / (1 + 0.5 * np.arange(K))))
        ranker.learn(slate, clicks=clicks.tolist())
    record = {f"first {count} slates": digest(slates[:count]) for count in CHECKPOINTS}
    record |= {f"state.{array}": value for array, value in state_of(ranker).items()}
    context = None if context_of is None else context_of(0)
    means, deviations = ranker.estimates(ids, context=context)
    return record | {"means": digest(means), "deviations": digest(deviations)}


ENVIRONMENTS = ("steady", "types", "switch")


def policies(only=None):
    """All policies in all environments."""
    return {
        f"{spec} in {name}": play(spec, name)
        for spec in only or specs()
        for name in ENVIRONMENTS
    }  # fmt: skip


# Calls: random requests, feedback, changes of the catalog, files and merges; a line of text each.

SESSIONS = (
    "cascade-mixed", "cascade-lin-ts", "cascade-ts", "context-lin-ts:context=4", "pbm-ucb",
)  # fmt: skip
CALLS = 80
FEATURES = 6
WEIGHTS = {
    "recommend": 38, "learn": 30, "expire": 2, "warm_start": 2, "add_items": 4, "change_items": 4,
    "withdraw_items": 2, "set_available": 5, "set_baseline": 3, "load": 3, "merge": 3, "estimates": 3,
    "start_with_baseline": 1,
}  # fmt: skip


class Session:
    """A ranker that gets random calls; what each returns or raises is noted."""

    def __init__(self, spec):
        self.draw = np.random.default_rng([4, *spec.encode()])
        self.spec, self.lines, self.slates, self.waiting, self.n_items = spec, [], [], set(), 24
        self.context = "context" in spec
        self.ranker = self.new_ranker(seed=5, explore=0.2)

    def new_ranker(self, **options):
        ids, features, groups = items(24)
        return Ranker(Catalog(ids, features, groups=groups), k=K, policy=self.spec, max_pending=20, **options)

    def some(self, most, least=0):
        """Random ids, most of them in the catalog."""
        numbers = self.draw.permutation(self.n_items)[: self.draw.integers(least, most + 1)]
        return [f"i{number}" for number in numbers]

    def often(self, share=0.3):
        return self.draw.random() < share

    def recommend(self, ranker=None):
        options = {}
        if self.often():
            options["k"] = int(self.draw.integers(1, K + 2))
        if self.often():
            options["candidates"] = self.some(15, 2)
        if self.often():
            options["exclude"] = self.some(5)
        if self.often():
            positions = self.draw.permutation(K)[:2]
            options["pinned"] = dict(zip(positions.tolist(), self.some(2, 2), strict=True))
        if self.often():
            options["at_most"] = 1 if self.often() else {"g0": 1, "g1": 2}
        if self.often(0.6 if self.ranker.policy.takes_features else 0.1) and "candidates" in options:
            options["features"] = self.draw.random((len(options["candidates"]), FEATURES)).round(2).tolist()
        if self.context != self.often(0.05):
            options["context"] = self.draw.random(TYPES).round(2).tolist()
        if self.often(0.15) and "candidates" in options:
            options["candidates"] = (ranker or self.ranker).catalog.subset(options["candidates"])
        slate = (ranker or self.ranker).recommend(**options)
        if ranker is None:
            self.slates.append(slate)
            self.waiting.add(slate.id)
        return options, (slate.items, slate.skipped_pins, slate.explored, slate.reasons, slate.chosen)

    def feedback(self, slate):
        draw = self.draw
        form, size = draw.integers(5), max(len(slate.items), 1)
        positions = sorted(draw.permutation(size)[: draw.integers(0, 3)].tolist())
        if form == 0:
            return {"click": positions[0] if positions else None}
        if form == 1:
            return {"click": int(draw.integers(K + 1))}
        if form == 2:
            return {"clicks": positions, "examined": int(draw.integers(size + 1))}
        return {"clicks": positions}

    def learn(self):
        if not self.slates:
            return {}, "nothing is waiting"
        waiting = [slate for slate in self.slates if slate.id in self.waiting]
        slate = (
            (waiting or self.slates)[-1]
            if self.often(0.6)
            else self.slates[self.draw.integers(len(self.slates))]
        )
        number = self.slates.index(slate)
        self.waiting.discard(slate.id)
        options = self.feedback(slate)
        self.ranker.learn(slate.id if self.often() else slate, **options)
        return {"slate": number, **options}, "learned"

    def expire(self):
        return {"older_than": 0}, self.ranker.expire(older_than=0)

    def warm_start(self):
        log = []
        for _ in range(30):
            line = {"items": self.some(6, 1), "clicks": [] if self.often(0.6) else [0]}
            if self.context:
                line["context"] = self.draw.random(TYPES).round(2).tolist()
            if self.often():
                line["examined"] = 1
            log.append(line)
        weight = float(self.draw.choice([0.25, 0.5, 1.0]))
        return {"weight": weight}, self.ranker.warm_start(log, weight=weight)

    def add_items(self):
        ids = [f"i{self.n_items}", f"i{self.n_items + 1}"]
        features = [self.draw.random(FEATURES).round(2).tolist(), None]
        self.ranker.add_items(ids, features, groups=["g0", None])
        self.n_items += 2
        return {"items": ids, "features": features}, "added"

    def change_items(self):
        ids = self.some(2, 1)
        features = self.draw.random((len(ids), FEATURES)).round(2).tolist()
        groups = ["g1"] * len(ids) if self.often(0.5) else None
        self.ranker.change_items(ids, features, groups=groups)
        return {"items": ids, "features": features, "groups": groups}, "changed"

    def withdraw_items(self):
        ids = self.some(2, 1)
        self.ranker.withdraw_items(ids)
        return {"items": ids}, "withdrawn"

    def set_available(self):
        ids, available = self.some(4, 1), self.often(0.6)
        self.ranker.set_available(ids, available)
        return {"items": ids, "available": available}, "set"

    def set_baseline(self):
        ids, most = self.some(9, K), float(self.draw.choice([0.05, 0.3]))
        if self.often(0.2):
            ids = None
        self.ranker.set_baseline(ids, most)
        return {"items": ids, "max_loss": most}, self.ranker.baseline

    def load(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ranker.save(pathlib.Path(folder) / "ranker")
            self.ranker = Ranker.load(pathlib.Path(folder) / "ranker")
        return {}, "saved and loaded"

    def merge(self):
        """Merge with a ranker of the same catalog that has learned from ten slates."""
        other = Ranker(self.ranker.catalog, k=K, policy=self.spec, seed=int(self.draw.integers(2**31)))
        for _ in range(10):
            context = {"context": [1.0, 0.0, 0.5, 0.0]} if self.context else {}
            slate = other.recommend(**context)
            other.learn(slate, clicks=[0] if self.often(0.5) else [])
        self.ranker = self.ranker.merge(other)
        return {}, "merged"

    def estimates(self):
        ids = self.some(3, 1)
        context = {"context": self.draw.random(TYPES).round(2).tolist()} if self.context else {}
        return {"items": ids, **context}, self.ranker.estimates(ids, **context)

    def start_with_baseline(self):
        """A ranker with a baseline from the start, for five slates."""
        baseline = [f"i{number}" for number in self.draw.permutation(24)[:8]]
        most = float(self.draw.choice([0.05, 0.3]))
        ranker = self.new_ranker(seed=int(self.draw.integers(2**31)), baseline=baseline, max_loss=most)
        slates = []
        for _ in range(5):
            slate = ranker.recommend(**({"context": [1.0, 0.0, 0.5, 0.0]} if self.context else {}))
            ranker.learn(slate, clicks=[0] if self.often(0.5) else [])
            slates.append((slate.items, slate.reasons, slate.chosen))
        return {"baseline": baseline, "max_loss": most}, slates

    def run(self):
        weights = np.array(list(WEIGHTS.values())) / sum(WEIGHTS.values())
        # Every kind of call first; some policies cannot merge later, when features have changed.
        kinds = ["recommend", "learn", "merge", *WEIGHTS, *self.draw.choice(list(WEIGHTS), CALLS, p=weights)]
        for number, kind in enumerate(kinds[:CALLS]):
            try:
                options, result = getattr(self, kind)()
                self.lines.append(f"{number:02} {kind} {text(options)} -> {text(result)}")
            except FirstclickError as error:
                self.lines.append(f"{number:02} {kind} raises {type(error).__name__}")
        return {"calls": self.lines} | {
            f"state.{name}": value for name, value in state_of(self.ranker).items()
        }


def text(value):
    """A value without names of our types, whose numbers keep all bits."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, np.ndarray):
        return text(value.tolist())
    if isinstance(value, list | tuple):
        return "(" + " ".join(map(text, value)) + ")"
    if hasattr(value, "name") and hasattr(value, "value"):
        return str(value.value)
    return "subset" if type(value).__module__.startswith("firstclick") else str(value)


def calls(only=None):
    """400 calls of rankers with all options."""
    return {spec: Session(spec).run() for spec in only or SESSIONS}


# Simulations: sums of all curves.

SIMULATED = (
    "cascade-mixed", "cascade-lin-ts", "cascade-ts", "cascade-ucb1", "context-lin-ts", "dcm-lin-ucb",
)  # fmt: skip
WORLDS = (
    "linear:n_items=40,clicks=dcm/0.6/0.5", "types:n_items=40",
    "switch:n_items=40,period=500,clicks=pbm/1/0.7/0.5", "topics:n_items=40,clicks=scroll/0.8",
    "blb:n_items=16,k=4",
)  # fmt: skip


def final(curves):
    """Last values per run, and a hash of whole curves."""
    return {"final": np.asarray(curves)[..., -1].tolist(), "curves": digest(curves)}


def simulations(only=None):
    """Six policies in five worlds and on a matrix with SVD, and one simulation with a baseline."""
    records = {}
    for world in WORLDS:
        features = np.random.default_rng(6).random((16, 4)) if world.startswith("blb") else None
        for result in simulate(only or SIMULATED, world, features, k=4, steps=2000, runs=2, seed=7).results:
            for measure in ("reward", "regret", "expected_regret"):
                records[f"{result.policy} in {world}, {measure}"] = final(getattr(result, measure))
    results = simulate(
        only or SIMULATED[:3], WORLDS[0], k=4, steps=2000, runs=2, seed=7, baseline=0.7, max_loss=0.1
    )
    for result in results.results:
        for name, curves in result.against._asdict().items():
            records[f"{result.policy} with a baseline, {name}"] = final(curves)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "interactions.csv"
        with path.open("w", newline="") as file:
            draw, share = np.random.default_rng(8), 0.02 + 0.3 / np.arange(1, 61)
            csv.writer(file).writerows(
                [f"u{user}", f"i{item}"]
                for user in range(400)
                for item in np.flatnonzero(draw.random(60) < share)
            )
        options = [option for policy in only or SIMULATED for option in ("--policy", policy)]
        page = command(
            "simulate", "--interactions", str(path), *options,
            "--items=40", "--rank=5", "--k=4", "--steps=2000", "--runs=2", "--seed=7",
        )  # fmt: skip
    for result in page["results"]:
        for measure in ("reward", "regret", "expected_regret"):
            records[f"{result['policy']} on a matrix, {measure}"] = {"mean": result[measure]["mean"]}
    return records


def command(*arguments):
    """Run a command with --json, and read what it prints."""
    line = [sys.executable, "-m", "firstclick", *arguments, "--json"]
    run = subprocess.run(line, capture_output=True, text=True)
    if not run.stdout:
        raise SystemExit(f"firstclick {' '.join(arguments)}: {run.stderr}")
    return json.loads(run.stdout)


# MovieLens: verdicts and numbers of `firstclick reproduce`.


def movielens_file():
    return pathlib.Path(os.environ.get("FIRSTCLICK_DATA", ""), "ml-1m", "ratings.dat")


def movielens(only=None):
    """The claims of the paper on MovieLens 1M: its 100,000 slates, and 6 runs in place of 10."""
    if not movielens_file().is_file():
        raise SystemExit("MovieLens 1M not found: set FIRSTCLICK_DATA to the folder that holds ml-1m/")
    data, records = movielens_file().parent, {}
    with tempfile.TemporaryDirectory() as folder:
        page = command(
            "reproduce", "--dataset=movielens", "--data", str(data), "--out", f"{folder}/out",
            "--steps=100000", "--runs=6", "--seed=1", "--jobs=1",
        )  # fmt: skip
        with open(f"{folder}/out/runs.csv", newline="") as file:
            lines = list(csv.DictReader(file))
    for claim in page["claims"]:
        if claim["dataset"] == "movielens":
            means = [part["means"] for part in claim["figures"].get("parts", ())]
            records[claim["id"]] = {"verdict": claim["verdict"], "means": means}
    for line in lines:
        if line["step"] == "100000":
            named = [
                f"{name} {line[name]}" for name in ("experiment", "group", "items", "rank", "k", "policy")
            ]
            sums = records.setdefault(", ".join(named), {"expected_regret": [], "reward": []})
            for measure, values in sums.items():
                values.append(line[measure])
    return records


PARTS = {"policies": policies, "calls": calls, "simulations": simulations, "movielens": movielens}


def read(part):
    """The records of a part, and where they were made."""
    return json.loads((FOLDER / f"{part}.json").read_text())


def differences(records, now):
    """One line per difference: what is missing, new, renamed or has other bits."""
    lines = []
    for name in records.keys() | now.keys():
        if name not in now:
            renamed = [new for new in now.keys() - records.keys() if now[new] == records[name]]
            lines.append(f"{name}: recorded, not there now; the same bits: {', '.join(renamed) or 'none'}")
        elif name not in records:
            lines.append(f"{name}: not recorded")
        elif isinstance(records[name], dict):
            lines += [f"{name}: {line}" for line in differences(records[name], now[name])]
        elif isinstance(records[name], list) and len(records[name]) == len(now[name]):
            pairs = [pair for pair in zip(records[name], now[name], strict=True) if pair[0] != pair[1]]
            lines += (
                [f"{name}, first of {len(pairs)}:\n  - {pairs[0][0]}\n  + {pairs[0][1]}"] if pairs else []
            )
        elif records[name] != now[name]:
            lines.append(f"{name}: {records[name]} -> {now[name]}")
    return sorted(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all by default")
    parser.add_argument("--write", action="store_true", help="record instead of comparing")
    options = parser.parse_args()
    changed = False
    for part in options.parts or PARTS:
        if part == "movielens" and not options.parts and not movielens_file().is_file():
            print("movielens: left out, set FIRSTCLICK_DATA to the folder that holds ml-1m/")
            continue
        now = json.loads(json.dumps(PARTS[part]()))
        if options.write:
            page = {"made": made_here(), "records": now}
            (FOLDER / f"{part}.json").write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n")
            print(f"{part}: {len(now)} records written")
            continue
        records = read(part)
        if not comparable(part, records):
            print(f"{part}: recorded elsewhere, bits may differ: {records['made']}, here {made_here()}")
        lines = differences(records["records"], now)
        print(f"{part}: {len(now)} records, {len(lines)} differences", *lines, sep="\n  ")
        changed = changed or bool(lines)
    sys.exit(changed)


if __name__ == "__main__":
    main()
