"""The demonstration model and its OpenAI-compatible server: a program of its own.

It is not a language model but a lexical matcher: it compares words. It is for trying the service
out, and for tests and benchmarks without a provider's key.
"""

from __future__ import annotations

from svc.demo.server import DemoServer

__all__ = ["DemoServer"]
