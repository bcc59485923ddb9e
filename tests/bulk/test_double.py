"""The double of the Batch API is driven by the official client, which we did not write."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from tests.batching import ENDPOINT, LINES, BatchDouble
from tests.scripted import Reply, always, completion, error

WINDOW: Any = "24h"


@pytest.fixture
def double() -> Iterator[BatchDouble]:
    with BatchDouble(always(Reply(completion("A")))) as made:
        yield made


@pytest.fixture
def client(double: BatchDouble) -> Iterator[OpenAI]:
    with OpenAI(base_url=double.url, api_key="k", max_retries=0) as made:
        yield made


def calls(*names: str, model: str = "m") -> io.BytesIO:
    lines = [
        {
            "custom_id": name,
            "method": "POST",
            "url": ENDPOINT,
            "body": {"model": model, "messages": [{"role": "user", "content": name}]},
        }
        for name in names
    ]
    return io.BytesIO("".join(f"{json.dumps(line)}\n" for line in lines).encode())


def created(client: OpenAI, file: io.BytesIO, **metadata: str) -> Any:
    uploaded = client.files.create(file=("calls.jsonl", file), purpose="batch")
    return client.batches.create(
        input_file_id=uploaded.id,
        endpoint=ENDPOINT,
        completion_window=WINDOW,
        metadata=metadata or None,
    )


def test_a_batch_goes_from_validating_to_completed(double: BatchDouble, client: OpenAI) -> None:
    double.takes_s = 3_600
    batch = created(client, calls("a", "b", "c"), svc="name")
    assert (batch.status, batch.metadata) == ("validating", {"svc": "name"})
    double.takes_s = 0
    batch = client.batches.retrieve(batch.id)
    assert batch.status == "completed" and batch.request_counts.total == 3
    assert batch.output_file_id and batch.error_file_id is None
    lines = client.files.content(batch.output_file_id).text.splitlines()
    assert {json.loads(line)["custom_id"] for line in lines} == {"a", "b", "c"}
    assert json.loads(lines[0])["response"]["body"]["choices"][0]["message"]["content"] == "A"


def test_what_has_expired_and_what_failed_stands_in_the_error_file(
    double: BatchDouble, client: OpenAI
) -> None:
    double.expiring[0] = 0.5
    batch = client.batches.retrieve(created(client, calls("a", "b", "c", "d")).id)
    assert batch.status == "expired" and batch.error_file_id
    errors = client.files.content(batch.error_file_id).text.splitlines()
    assert [json.loads(line)["error"]["code"] for line in errors] == ["batch_expired"] * 2
    double.handler = always(Reply(error("slow down"), status=429))
    batch = client.batches.retrieve(created(client, calls("a")).id)
    assert batch.status == "completed" and batch.output_file_id is None
    line = json.loads(client.files.content(batch.error_file_id or "").text)
    assert line["response"]["status_code"] == 429


def test_batches_are_listed_in_pages_with_the_newest_first(client: OpenAI) -> None:
    ids = [created(client, calls("a"), svc=str(number)).id for number in range(5)]
    assert [one.id for one in client.batches.list(limit=2)] == ids[::-1]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (calls("a", "a"), "duplicate_custom_id"),
        (io.BytesIO(calls("a").getvalue() + calls("b", model="n").getvalue()), "mismatched_model"),
        (calls(*map(str, range(LINES + 1))), "too_many_tasks"),
    ],
    ids=["twice", "two models", "too many"],
)
def test_a_file_with_faults_fails_its_batch(client: OpenAI, file: io.BytesIO, code: str) -> None:
    batch = created(client, file)
    assert batch.status == "failed" and batch.errors.data[0].code == code


def test_a_batch_is_cancelled_with_its_calls(double: BatchDouble, client: OpenAI) -> None:
    double.takes_s = 3_600
    batch = client.batches.cancel(created(client, calls("a")).id)
    assert batch.status == "cancelled" and not double.carried_out
    assert "batch_cancelled" in client.files.content(batch.error_file_id or "").text


def test_files_are_found_by_their_names_until_they_are_deleted(client: OpenAI) -> None:
    file = client.files.create(file=("calls.jsonl", calls("a")), purpose="batch")
    assert [one.filename for one in client.files.list(purpose="batch")] == ["calls.jsonl"]
    assert client.files.delete(file.id).deleted
    with pytest.raises(NotFoundError):
        client.files.content(file.id)
    with pytest.raises(BadRequestError):
        client.batches.create(input_file_id=file.id, endpoint=ENDPOINT, completion_window=WINDOW)
