"""What setup.cfg promises, and an installed wheel keeps."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from svc import __version__

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("setup.py", "setup.cfg", "README.md", "LICENSE", "svc", "templates", "static")
INSTALL_S = 600  # seconds, on a slow line
STOP_S = 40  # seconds
ASSETS = "from svc import assets; print(assets.folder('templates'), assets.folder('static'))"
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def requirements(text: str, mark: str) -> dict[str, str]:
    """Names and versions of the lines `name<mark>version`, upper bounds and extras left out."""
    name, below = r"([A-Za-z0-9-]+)(?:\[[a-z]+\])?", "(?:,<[0-9.]+)?"
    return dict(re.findall(rf"^{name}{mark}([0-9.]+){below}$", text, re.MULTILINE))


def test_the_lowest_versions_are_the_lower_bounds() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    declared = config["options"]["install_requires"].split()
    bounds = requirements("\n".join(declared), ">=")
    pinned = (ROOT / "tests/requirements-lowest.txt").read_text("utf-8")
    assert len(bounds) == len(declared)
    assert requirements(pinned, "==") == bounds


def test_contributing_has_a_line_for_every_dependency() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = config["options.extras_require"]
    optional = [extras[name] for name in ("test", "dev", "audit", "otel", "ray", "spark")]
    declared = [config["options"]["install_requires"], *optional]
    names = requirements("\n".join(line for text in declared for line in text.split()), ">=")
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text.partition("## Dependencies")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| \S", table, re.MULTILINE)
    explained = {name for row in rows for name in row.split(", ")} - {"package"}
    assert explained == set(names)


STRANGER = re.compile(
    r"""
    # An installer with the name of the command, behind options, other names and quotes.
    (?:pip3?|pipx|uv\ pip|uv\ tool)\ (?:install|download|run)
        (?:\ -\S+)*(?:\ [^\s`'"]+)*?\ ['"]?svc(?![\w./*:-])
    | (?:uv|poetry|pdm)\ add\ (?:-\S+\ )*['"]?svc(?![\w./*:-])
    # A requirement.
    | ^\s*['"]?svc\ ?(?:==|>=|~=)
    | \bsvc\[[a-z]+\]
    """,
    re.MULTILINE | re.VERBOSE,
)


@pytest.mark.parametrize(
    "advice",
    [
        "pip install svc",
        "pip install 'svc[mcp]'",
        "pip3 install -U svc",
        "python -m pip install requests svc",
        "uv add svc",
        "uv pip install svc",
        "pipx install svc",
        "svc[mcp]>=1",
        "svc==0.1.0",
    ],
)
def test_advice_to_install_a_strangers_package_is_found(advice: str) -> None:
    assert STRANGER.search(advice)


@pytest.mark.parametrize(
    "advice",
    [
        "pip install -e .",
        "pip install 'mcp>=2.0'",
        "pip install dist/decision_svc-*.whl",
        "svc map",
    ],
)
def test_other_advice_is_left_alone(advice: str) -> None:
    assert not STRANGER.search(advice)


def test_nobody_is_told_to_install_a_strangers_package() -> None:
    """On the public index the name svc belongs to another project."""
    told = [
        path.relative_to(ROOT)
        for path in _texts(ROOT)
        if path != Path(__file__) and STRANGER.search(path.read_text("utf-8", errors="replace"))
    ]
    assert told == []


def test_the_distribution_has_a_name_of_its_own() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["metadata"]["name"] == "decision-svc"
    assert config["options.entry_points"]["console_scripts"].split() == [
        "svc",
        "=",
        "svc.cli.main:main",
    ]


def _texts(root: Path) -> Iterator[Path]:
    """The files of the project, without what tools have left beside them."""
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not _is_left_by_a_tool(Path(folder, name))]
        yield from (Path(folder, name) for name in names if not name.endswith((".pyc", ".db")))


def _is_left_by_a_tool(folder: Path) -> bool:
    names = ("__pycache__", "build", "dist", "artifacts", ".git", "node_modules")
    is_hidden = folder.name.startswith(".") and folder.name != ".ci"
    return folder.name in names or is_hidden or folder.name.endswith(".egg-info")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that holds nothing but the wheel and what it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # building writes beside what it builds from
    source.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=ignored)
        else:
            shutil.copy(path, source)
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--use-pep517",
        "--no-deps",
        "-w",
        folder,
        source,
    )
    (wheel,) = folder.glob("decision_svc-*.whl")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv/bin"
    run(programs / "python", "-m", "pip", "install", "-q", wheel)
    return programs


def run(*command: str | Path) -> str:
    """Run outside the checkout, so that only what is installed is found."""
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_S, cwd="/", env=environment()
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SVC_", "GUNICORN_", "PYTHON")) and not name.endswith("_API_KEY")
    }


@contextmanager
def serving(programs: Path, database: Path) -> Iterator[str]:
    """`svc serve --demo` as installed; its base URL."""
    server = subprocess.Popen(
        [programs / "svc", "serve", "--demo", "--addr", "127.0.0.1:0", "--db", database],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env=environment(),
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        with server.stdout as output:
            yield output.readline().strip().removeprefix("listening on ")
        server.terminate()
        assert server.wait(STOP_S) == 0
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@pytest.mark.wheel
def test_the_installed_command_knows_its_version(installed: Path) -> None:
    assert run(installed / "svc", "--version") == f"svc {__version__}"


@pytest.mark.wheel
def test_a_wheel_carries_the_files_of_the_folders_outside_the_package(installed: Path) -> None:
    folders = run(installed / "python", "-c", ASSETS).split()
    for name, found in zip(("templates", "static"), folders, strict=True):
        assert Path(found).is_relative_to(installed.parent)
        assert files(Path(found)) == files(ROOT / name)


@pytest.mark.wheel
def test_a_wheel_carries_everything_in_the_package(installed: Path) -> None:
    found = Path(run(installed / "python", "-c", "import svc; print(svc.__path__[0])"))
    outside = {name for name in files(found) if name.startswith(("_templates/", "_static/"))}
    assert files(found) - outside == files(ROOT / "svc")


@pytest.mark.wheel
def test_an_installed_server_answers(installed: Path, tmp_path: Path) -> None:
    sample = (ROOT / "templates/demo_request.json").read_bytes()
    with serving(installed, tmp_path / "svc.db") as url:
        with _opener.open(f"{url}/health", timeout=60) as response:
            assert json.load(response) == {"status": "ok", "version": __version__}
        with _opener.open(f"{url}/v1/decide", sample, timeout=60) as response:
            answers = json.load(response)["answers"]
    assert answers.keys() == json.loads(sample)["questions"].keys()


def files(folder: Path) -> set[str]:
    """Every file below a folder by its relative path, without what running leaves behind."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
