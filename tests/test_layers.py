"""Imports go one way: a module imports lower levels and its own folder only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEVELS = (
    {
        "addresses",
        "assets",
        "cells",
        "costly",
        "deadline",
        "errors",
        "files",
        "flows",
        "http",
        "images",
        "joined",
        "jsontext",
        "lazy",
        "limits",
        "logs",
        "memo",
        "meter",
        "names",
        "pacing",
        "phrases",
        "pins",
        "processor_time",
        "processors",
        "ratelimit",
        "recent",
        "records",
        "rests",
        "settings",
        "shapes",
        "shares",
        "sharing",
        "tallies",
        "terms",
        "threads",
        "tracing",
        "turns",
        "usage",
        "wire",
    },
    {"questions", "stats", "demo", "client"},
    {"plans", "wording"},
    {"schemas", "store", "providers", "metrics", "telemetry"},
    {"learning", "openapi", "spending"},
    {"engine"},
    {"bootstrap", "web", "batch"},
    {"app", "server", "inprocess", "evals", "bulk", "hooks"},
    {"cli", "wsgi", "gunicorn.conf"},
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
WITHIN = {("engine", "plans"): "plans"}  # folders that are rooms of their own
ALONE = {"demo"}  # a program of its own, which imports nothing of svc
# Rooms whose `__init__.py` hands on what other rooms use of them.
FACES = {
    "batch",
    "demo",
    "evals",
    "hooks",
    "learning",
    "openapi",
    "plans",
    "providers",
    "questions",
    "schemas",
    "server",
    "spending",
    "stats",
    "store",
    "telemetry",
}
# Modules that other rooms enter directly: the first three would make light commands slower, and of
# the last gunicorn reads every name.
BESIDE_FACES = {
    "svc.evals.page",
    "svc.hooks.process",
    "svc.store.decisions",
    "svc.server.gunicorn_settings",
}
APART = ({"store", "providers"}, {"web", "cli"})  # never meet
ONLY_USERS = {
    "sqlite3": {"store"},
    "cryptography": {"store"},
    "requests": {"client", "providers"},
    "urllib3": {"client", "joined", "providers"},
    "flask": {"web", "app"},
    "prometheus_client": {"metrics"},
    "prometheus_flask_exporter": {"metrics"},
    "gunicorn": {"server", "gunicorn.conf"},
    "click": {"cli"},
    "apispec": {"openapi"},
    "jinja2": {"evals"},
    "mcp": {"cli"},
    "opentelemetry": {"telemetry"},
    "ray": {"bulk"},
    "pyspark": {"bulk"},
    "pandas": {"bulk"},
    "pyarrow": {"bulk"},
}
# What engines load into their workers, which have `svc.client` and nothing of the server.
ENGINES = ("svc/bulk/ray.py", "svc/bulk/spark.py")
FILES = [*sorted((ROOT / "svc").rglob("*.py")), ROOT / "wsgi.py", ROOT / "gunicorn.conf.py"]
MODULES = [path for path in FILES if path != ROOT / "svc/__init__.py"]


def room(path: Path) -> str:
    """The folder or file below `svc` that a module belongs to, or its own name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return below_svc(parts[1:]) if parts[0] == "svc" else parts[0]


def below_svc(parts: Sequence[str]) -> str:
    return WITHIN.get(tuple(parts[:2]), parts[0])


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a module, wherever in it."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]


def imports(path: Path) -> Iterator[str]:
    """The absolute names that a module imports."""
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules_used(path: Path) -> Iterator[str]:
    """The modules of `svc` that a module imports names from."""
    for node in statements(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("svc."):
            yield str(node.module)


def rooms_used(path: Path) -> set[str]:
    names = [name.split(".") for name in imports(path)]
    return {below_svc(name[1:]) for name in names if name[0] == "svc"} - {"__version__"}


def packages_used(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)} - {"svc", "__future__"}


def may_import(own: str, used: str) -> bool:
    """Whether `used` lies lower; the lowest level is one room of single files."""
    if {own, used} in APART:
        return False
    return LEVEL.get(used, len(LEVELS)) < LEVEL[own] or LEVEL.get(used) == LEVEL[own] == 0


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def wrong(look: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """What `look` finds wrong, by module; a test for each module would take as long as all here."""
    return {name(path): found for path in MODULES if (found := look(path))}


def test_a_module_imports_lower_levels_and_its_own_room() -> None:
    def refused(path: Path) -> set[str]:
        own = room(path)
        assert own in LEVEL, f"{own} has no level; give it one here and in CONTRIBUTING.md"
        return {used for used in rooms_used(path) - {own} if not may_import(own, used)}

    assert wrong(refused) == {}


def test_a_room_with_a_face_is_entered_by_it() -> None:
    allowed = BESIDE_FACES | {"svc.engine.plans", *(f"svc.{face}" for face in FACES)}

    def beside(path: Path) -> set[str]:
        others = FACES - {room(path)}
        entered = {used for used in modules_used(path) if below_svc(used.split(".")[1:]) in others}
        return entered - allowed

    assert wrong(beside) == {}


def test_a_package_with_one_room_is_used_there_alone() -> None:
    def misplaced(path: Path) -> set[str]:
        used = packages_used(path) & ONLY_USERS.keys()
        return {package for package in used if room(path) not in ONLY_USERS[package]}

    assert wrong(misplaced) == {}


def test_the_lowest_level_and_the_demonstration_use_the_standard_library_alone() -> None:
    def foreign(path: Path) -> set[str]:
        if LEVEL[room(path)] and room(path) not in ALONE:
            return set()
        extended = {"urllib3"} if room(path) == "joined" else set()
        return packages_used(path) - sys.stdlib_module_names - extended

    def of_svc(path: Path) -> set[str]:
        return rooms_used(path) - {room(path)} if room(path) in ALONE else set()

    assert wrong(foreign) == wrong(of_svc) == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_loads_uses_the_client_and_the_lowest_level_alone(engine: str) -> None:
    reached: set[Path] = set()
    ahead = {ROOT / engine}
    while ahead:
        path = ahead.pop()
        reached.add(path)
        own = {ROOT / f"{module.replace('.', '/')}.py" for module in modules_used(path)}
        ahead |= {one for one in own if room(one) == "bulk"} - reached
    rooms = {used for path in reached for used in rooms_used(path)} - {"bulk"}
    assert {used for used in rooms if LEVEL[used] > 0} == {"client"}


@pytest.mark.parametrize("path", sorted((ROOT / "svc/bulk").glob("*.py")), ids=name)
def test_an_engine_is_used_by_its_own_file_alone(path: Path) -> None:
    used = packages_used(path) & {"ray", "pyspark", "pandas", "pyarrow"}
    assert used == set() or name(path) in ENGINES


def test_contributing_draws_the_same_levels() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    drawn = {
        row[1].strip(): set(row[2].replace("`", "").replace(" ", "").split(",")) for row in rows
    }
    for level, rooms in enumerate(LEVELS):
        assert drawn[str(level)] == rooms
