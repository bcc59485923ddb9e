"""Keys that would cross the network in the clear are told of at the start, by name alone."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from svc.bootstrap import build
from svc.providers import build_catalog, exposed_keys
from svc.settings import load


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        (
            {"SVC_PROVIDER_FAR_URL": "http://far.example/v1", "SVC_PROVIDER_FAR_KEY": "k-secret"},
            [("far", "SVC_PROVIDER_FAR_KEY")],
        ),
        (
            {"SVC_PROVIDER_OPENAI_URL": "http://10.0.0.7/v1", "OPENAI_API_KEY": "k-secret"},
            [("openai", "OPENAI_API_KEY")],
        ),
        (
            {"SVC_PROVIDER_URL": "http://proxy.example/v1", "OPENROUTER_API_KEY": "k-secret"},
            [("openrouter", "OPENROUTER_API_KEY")],
        ),
        (
            {"SVC_PROVIDER_VLLM_URL": "http://gpu:8000/v1", "SVC_PROVIDER_VLLM_KEY": "k-secret"},
            [("vllm", "SVC_PROVIDER_VLLM_KEY")],
        ),
        ({"SVC_PROVIDER_FAR_URL": "http://far.example/v1"}, []),
        (
            {"SVC_PROVIDER_FAR_URL": "https://far.example/v1", "SVC_PROVIDER_FAR_KEY": "k-secret"},
            [],
        ),
        (
            {"SVC_PROVIDER_NEAR_URL": "http://127.0.0.1/v1", "SVC_PROVIDER_NEAR_KEY": "k-secret"},
            [],
        ),
        ({"OPENAI_API_KEY": "k-secret"}, []),
    ],
)
def test_a_key_over_plain_http_to_another_machine_is_told_of(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    environ: dict[str, str],
    told: list[tuple[str, str]],
) -> None:
    settings = load({"SVC_DB": str(tmp_path / "svc.db"), **environ})
    assert exposed_keys(settings, build_catalog(settings)) == told
    with caplog.at_level(logging.WARNING):
        build(settings).close()
    warnings = [record.getMessage() for record in caplog.records if "plain http" in record.msg]
    assert len(warnings) == len(told)
    for warning, (name, variable) in zip(warnings, told, strict=True):
        assert f"provider {name}, from {variable}," in warning
    assert "k-secret" not in caplog.text
