"""Plant random faults in a package, one at a time, and list those that no test of the package detects.

`make mutants PACKAGE=catalog N=40` writes the result to fault_sample.json, in the column `now`. The sample
stays the same when code moves: a fault is chosen by the hash of its function's name, its line and its kind.

Faults are planted in a copy of src. Tests run in a fork of a process that has imported the libraries already,
so that a fault costs no start-up. The CPU time of a fault is limited.
"""

import argparse
import ast
import collections
import compileall
import contextlib
import hashlib
import importlib
import importlib.util
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RESULTS = pathlib.Path(__file__).with_suffix(".json")
# The sources of a package below src/firstclick, and its tests below tests, those that cost least first.
PACKAGES = {
    "kernels": (["kernels"], ["kernels", "policies"]),
    "policies": (["policies", "testing"], ["policies"]),
    "online": (["online"], ["online", "doors"]),
    "catalog": (["catalog"], ["catalog"]),
    "files": (["files", "validation", "data"], ["files", "data"]),
    "logs": (["logs"], ["logs"]),
    "click_models": (["click_models"], ["click_models"]),
    "evaluation": (["evaluation"], ["evaluation"]),
    "trials": (["trials"], ["trials"]),
    "experiments": (["worlds", "experiments", "studies"], ["worlds", "experiments", "studies"]),
    "report": (["report"], ["report"]),
    "serve": (["serve", "wire"], ["serve", "doors", "faults"]),
    "client": (["client"], ["client", "doors"]),
    "cli": (["cli"], ["cli"]),
    "top": (
        ["*.py"],
        ["_shared", "test_[it]*.py", "docs/test_extras.py"],
    ),
}
PLAIN = ("kernels", "policies")  # in plain Python: each fault in a kernel would have to be compiled
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult}
Fault = collections.namedtuple("Fault", "key file start end line before after function")


def mutate(node):
    """Return the code of the node with a fault, or None."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            changed = ast.Compare(node.left, [COMPARISONS[type(operator)]()], node.comparators)
        case ast.BinOp(op=operator) if type(operator) in OPERATORS:
            changed = ast.BinOp(node.left, OPERATORS[type(operator)](), node.right)
        case ast.AugAssign(op=ast.Add() | ast.Sub() as operator):
            return ast.unparse(ast.AugAssign(node.target, OPERATORS[type(operator)](), node.value))
        case ast.BoolOp(op=operator):
            changed = ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            changed = node.operand
        case ast.Constant(value=value) if type(value) is int and 0 <= value < 1000:
            return str(value + 1)
        case ast.Expr(value=ast.Call()):
            return "pass"
        case _:
            return None
    return f"({ast.unparse(changed)})"


def nodes(tree, function=""):
    """Each node that runs, with the name of its function: no annotations, no parts of f-strings."""
    for field, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            if field in ("annotation", "returns") or not isinstance(node, ast.AST):
                continue
            if isinstance(node, ast.JoinedStr):  # Python 3.11 gives its parts wrong positions.
                continue
            yield node, function
            inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
            yield from nodes(node, inner)


def faults(files, seed):
    """All faults that can be planted, in the order in which they are chosen."""
    found, seen = [], collections.Counter()
    for file in files:
        text = file.read_bytes()
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for node, function in nodes(ast.parse(text)):
            after = mutate(node)
            if after is None:
                continue
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            line = text[starts[node.lineno - 1] : starts[node.lineno]].decode().strip()
            kind = f"{type(node).__name__} {type(getattr(node, 'op', None)).__name__}"
            site = (function, line, kind)
            seen[site] += 1
            key = hashlib.sha256(repr((seed, *site, seen[site])).encode()).hexdigest()
            before = " ".join(text[start:end].decode().split())
            found.append(Fault(key, file, start, end, (node.lineno, line), before, after, function))
    return sorted(found)


def below(folder, names, pattern):
    """Files named by a list of folders and patterns."""
    roots = [path for name in names for path in sorted(folder.glob(name))]
    return [file for path in roots for file in (sorted(path.rglob(pattern)) if path.is_dir() else [path])]


class Outcome:
    """Plug-in of pytest: which tests failed, how long each file took, and which libraries were imported."""

    def __init__(self):
        self.failed, self.seconds = [], collections.Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.fspath] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)


def run(arguments, folder, cpu=None, wall=None):
    """Run pytest in a fork: its exit code (None: the time limit), and its outcome."""
    result = folder / "outcome.json"
    result.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        os.setsid()
        if cpu:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
        log = os.open(folder / "pytest.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(log, 1), os.dup2(log, 2), os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]  # The tests of another checkout have the same name.
        import pytest

        outcome = Outcome()
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={folder / 'tmp'}"]
        ignored = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = pytest.main([*options, *ignored, *arguments], [outcome])
        paths = {name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}
        libraries = [name for name, where in paths.items() if "-packages/" in where]
        result.write_text(json.dumps([outcome.failed, outcome.seconds, libraries]))
        os._exit(code)
    began = time.monotonic()
    try:
        while not (done := os.waitpid(child, os.WNOHANG))[0]:
            time.sleep(0.05)
            if wall and time.monotonic() - began > wall:
                os.killpg(child, signal.SIGKILL)
                wall = None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # What its tests left running.
    code = os.waitstatus_to_exitcode(done[1])
    return (code, *json.loads(result.read_text())) if code >= 0 and result.exists() else (None, [], {}, [])


def sample(package, n, seed, root):
    """Plant n faults of a package, and return how many its tests detect, and the others."""
    sources, tests = PACKAGES[package]
    began = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy = folder / "src"
        shutil.copytree(root / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(copy, quiet=1)
        sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(RESULTS.parents[2])))]
        os.environ |= {"PYTHONPATH": str(copy), "FIRSTCLICK_CACHE_DIR": str(folder / "kernels")}
        os.chdir(root)
        files = below(root / "tests", tests, "test_*.py")
        *_, libraries = run(["--collect-only", *map(str, files)], folder)
        for library in libraries:
            if not library.startswith(("_pytest", "pytest")):
                try:
                    importlib.import_module(library)
                except Exception:
                    continue
        start, start_cpu = time.monotonic(), sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        code, broken, seconds, _ = run([*map(str, files)], folder)
        if code not in (0, 1):
            sys.exit(f"the tests of {package} do not run:\n{(folder / 'pytest.txt').read_text()[-3000:]}")
        wall = 5 * (time.monotonic() - start) + 60
        cpu = 2 * (sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - start_cpu) + 20
        skipped = [f"--deselect={test}" for test in broken]
        texts = {file: set(re.findall(r"\w+", file.read_text())) for file in files}
        chosen = faults(below(copy / "firstclick", sources, "*.py"), seed)[:n]
        survivors = []
        for number, fault in enumerate(chosen, 1):
            text = fault.file.read_bytes()
            names = set(re.findall(r"^(?:def|class) (\w+)", text.decode(), re.MULTILINE)) | {fault.file.stem}
            first = sorted(
                files,
                key=lambda file: (
                    fault.function not in texts[file],
                    -len(names & texts[file]),
                    seconds.get(str(file.relative_to(root)), 0),
                ),
            )
            compiled = pathlib.Path(importlib.util.cache_from_source(str(fault.file)))
            compiled.unlink(missing_ok=True)
            fault.file.write_bytes(text[: fault.start] + fault.after.encode() + text[fault.end :])
            code, failed, *_ = run(["-x", *skipped, *map(str, first)], folder, cpu, wall)
            fault.file.write_bytes(text)
            where = f"{fault.file.relative_to(folder)}:{fault.line[0]}"
            verdict = {None: "time limit", 0: "SURVIVED", 1: (*failed, "")[0]}.get(code, "error")
            print(f"{number}/{len(chosen)} {where}: {fault.before} -> {fault.after}  {verdict}", flush=True)
            if code == 0:
                survivors.append(f"{where}: {fault.before} -> {fault.after} in: {fault.line[1]}")
    used = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - began
    n_found = len(chosen) - len(survivors)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
    return {
        "found": n_found, "planted": len(chosen), "cpu_seconds": round(used), "commit": commit.stdout.strip(),
        "not_run": broken, "survivors": survivors,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", choices=PACKAGES)
    parser.add_argument("--n", type=int, default=40, help="how many faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--root", type=pathlib.Path, default=RESULTS.parents[2], help="the checkout to sample"
    )
    parser.add_argument("--column", default="now", help="where the results are kept: before, now")
    options = parser.parse_args()
    plain = str(int(options.package in PLAIN))
    os.environ |= {"NUMBA_DISABLE_JIT": plain, "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    result = sample(options.package, options.n, options.seed, options.root.resolve())
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    columns = results.setdefault(options.package, {})
    columns[options.column] = result
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(*result["survivors"], sep="\n")
    for name, column in columns.items():
        print(f"{options.package}, {name}: {column['found']} of {column['planted']} detected")
    if "before" not in columns:
        print(f"{options.package}: there is no sample of before to compare with")
        return
    before = columns["before"]
    sys.exit(result["found"] * before["planted"] < before["found"] * result["planted"])


if __name__ == "__main__":
    main()
