"""The demonstration model and its OpenAI-compatible server: a program of its own.

It is a lexical matcher and no language model: it compares words. It is for trying the service
out, for tests and for benchmarks without a provider's key.
"""

from __future__ import annotations

from svc.demo.server import DemoServer

__all__ = ["DemoServer"]
