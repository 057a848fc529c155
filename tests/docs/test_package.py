"""What a user installs: the wheel is complete, works alone, and names nothing of its maker's machine."""

import importlib.util
import itertools
import os
import re
import site
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "firstclick"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

needs_build_tools = pytest.mark.skipif(
    any(importlib.util.find_spec(tool) is None for tool in ("build", "hatchling")),
    reason="build and hatchling are not installed; make test installs them",
)


def run(*command, cwd, **environment):
    """Run a command that must succeed, without this checkout on its path, and return its stdout."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=inherited | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip_install(target, *arguments):
    pip = (sys.executable, "-m", "pip", "--python", target / "bin" / "python", "--disable-pip-version-check")
    run(*pip, "install", "-q", *arguments, cwd=target)


def new_venv(folder):
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def site_packages(folder):
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@needs_build_tools
def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    expected = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "firstclick/py.typed" in names
    assert {name for name in names if ".dist-info/" not in name} == expected


@needs_build_tools
def test_the_wheel_states_what_pyproject_and_the_package_state(wheel):
    import firstclick

    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(archive.read(name))
    assert metadata["Version"] == firstclick.__version__
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
    assert metadata["Description-Content-Type"] == "text/markdown", "pyproject.toml lacks the readme"


@needs_build_tools
@pytest.mark.long
def test_the_installed_wheel_works_outside_the_checkout(wheel, tmp_path):
    """The dependencies are lent by this environment through a .pth file; firstclick itself is the wheel's."""
    target = new_venv(tmp_path / "venv")
    pip_install(target, "--no-deps", "--no-index", wheel)
    (site_packages(target) / "lent.pth").write_text("\n".join(site.getsitepackages()))

    show = "import firstclick; print(firstclick.__file__)"
    where = run(target / "bin" / "python", "-c", show, cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(site_packages(target))
    out = tmp_path / "out"
    run(target / "bin" / "firstclick", "demo", "--steps", "200", "--runs", "1", "--out", out, cwd=tmp_path)
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")


@needs_build_tools
@pytest.mark.long
def test_the_demo_runs_in_an_empty_environment_with_only_the_pinned_requirements(wheel, tmp_path):
    target = new_venv(tmp_path / "venv")
    pip_install(target, "--require-hashes", "-r", ROOT / "requirements" / "run.txt")
    pip_install(target, "--no-deps", "--no-index", wheel)

    out = tmp_path / "out"
    demo = ("demo", "--steps", "2000", "--runs", "2", "--out", out)
    run(target / "bin" / "firstclick", *demo, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")


def test_every_place_states_the_same_oldest_python():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    makefile = (ROOT / "Makefile").read_text()
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    major, minor = oldest.split(".")

    assert set(re.findall(r"needs Python ([\d.]+\d)", makefile)) == {oldest}
    assert re.findall(r"sys\.version_info < \((\d+), (\d+)\)", makefile) == [(major, minor)]
    assert re.findall(r"--python-version ([\d.]+)", makefile) == [oldest]
    assert tools["mypy"]["python_version"] == oldest
    assert f"Python {oldest}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_pin_is_in_one_layer_of_requirements_and_of_one_version():
    pins = []
    for below, layer in itertools.pairwise(["", "run", "test", "docs"]):
        text = (ROOT / "requirements" / f"{layer}.txt").read_text()
        assert not below or text.startswith(f"-r {below}.txt\n")
        # With their conditions.
        pins += set(re.findall(r"^[\w.-]+==[^\\]*", text, re.MULTILINE))
    assert sorted(pins) == sorted(set(pins))
    packages = [package for package, _ in {tuple(re.split("==| ", pin)[:2]) for pin in pins}]
    assert sorted(packages) == sorted(set(packages))


def tracked_texts():
    """Name and text of each file that git tracks, or would track once added."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, listing.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            yield name, path.read_bytes().decode("utf-8", errors="replace")


def configured_index_hosts():
    """The hosts of the package indexes of this machine's pip and uv."""
    settings = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
    variables = [value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))]
    hosts = re.findall(r"https?://(?:[^/@\s']*@)?([^/:\s']+)", "\n".join([settings.stdout, *variables]))
    return set(hosts) - {"localhost", "127.0.0.1"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_no_tracked_file_names_a_package_index_or_a_path_of_the_makers_machine():
    # Brackets keep the patterns from finding themselves.
    hosts = [r"py[p]i\.org", r"python[h]osted\.org", *map(re.escape, configured_index_hosts())]
    forbidden = re.compile("|".join([*hosts, r"(?<![\w.~-])/(?:work|root)/"]), flags=re.IGNORECASE)

    texts = dict(tracked_texts())
    assert "pyproject.toml" in texts
    lines = [(name, line) for name, text in texts.items() for line in text.splitlines()]
    assert [(name, line) for name, line in lines if forbidden.search(line)] == []
