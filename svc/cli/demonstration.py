"""The demonstration model as a provider of a command's own process."""

from __future__ import annotations

from dataclasses import replace

from svc.settings import ProviderOverride, Settings

DEMO_MODEL = "@demo/lexical"


def with_demo(settings: Settings, url: str) -> Settings:
    """The settings with the provider `demo` at `url`."""
    return replace(settings, providers={**settings.providers, "demo": ProviderOverride(url=url)})
