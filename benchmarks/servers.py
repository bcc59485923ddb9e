"""The service and its twins as gunicorn processes with the same settings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from benchmarks.decisions import MODEL
from benchmarks.harness import Process, python_environment, running, temporary_directory

SVC = (sys.executable, "-m", "svc.cli.main")  # the command `svc`, installed or not


@contextmanager
def service(provider: str) -> Iterator[Process]:
    """`svc serve` on a new database, asking `provider`, a base URL."""
    with temporary_directory() as folder, service_on(Path(folder) / "svc.db", provider) as server:
        yield server


def service_on(
    database: Path, provider: str, *, workers: int = 1, **further: str
) -> AbstractContextManager[Process]:
    """`svc serve` on a database of the caller's; `further` providers by name."""
    providers = {"bench": provider, **further}
    variables = {f"SVC_PROVIDER_{name.upper()}_URL": url for name, url in providers.items()}
    environment = {**python_environment(), **variables}
    options = ("--model", f"@bench/{MODEL}", "--workers", str(workers))
    return running(serve_command(database, *options), environment)


def serve_command(database: Path, *options: str) -> list[str]:
    """The command that serves on a port of the system's."""
    return [*SVC, "serve", "--addr", "127.0.0.1:0", "--db", str(database), *options]


def twin(name: str, provider: str = "", *, workers: int = 1) -> AbstractContextManager[Process]:
    """A twin by its factory's name in `benchmarks.twins`."""
    settings = ["--config", "python:benchmarks.twin_settings", "--workers", str(workers)]
    command = [sys.executable, "-m", "gunicorn", *settings, f"benchmarks.twins:{name}()"]
    return running(command, {**python_environment(), "SVC_BENCH_PROVIDER": provider})
