"""A batch on its way to its provider, ended at each instant, and with every failure."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from svc import limits
from svc.bulk.sending import (
    ATTENDED,
    CREATED_WITHIN_S,
    CREATIONS,
    UNATTENDED,
    RoundsEnd,
    Sending,
)
from svc.bulk.wanted import BatchFile
from svc.providers import (
    BadReply,
    Gone,
    KeyRefused,
    NoCredit,
    Overlong,
    ProviderError,
    RemoteBatch,
    ServerTrouble,
    State,
    Throttled,
)
from svc.providers.failures import Refused

CALLS = tuple(f"{number:032x}" for number in range(3))


class Killed(BaseException):
    """The process has ended."""


@dataclass
class Api:
    """A provider that remembers what it was asked, and ends its caller at one instant."""

    killed_at: int = -1
    steps: int = 0
    files: dict[str, str] = field(default_factory=dict)
    batches: dict[str, str] = field(default_factory=dict)
    state: State = State.ENDED
    codes: tuple[str, ...] = ()
    output: tuple[bytes, ...] = ()
    deleted: list[str] = field(default_factory=list)
    # Files that came to be after the upload had failed.
    late: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    # Whether a batch that is cancelled ends by that.
    obedient: bool = True
    fails: Callable[[str], None] = lambda _method: None
    results: tuple[str, ...] = ("out",)

    def tick(self) -> None:
        self.steps += 1
        if self.steps - 1 == self.killed_at:
            raise Killed

    def did(self, method: str, effect: Callable[[], Any]) -> Any:
        """An effect, with an instant before it and one after it."""
        self.tick()
        self.fails(method)
        result = effect()
        self.tick()
        return result

    def read_slowly(self, read: Callable[[], Any], usual_s: float) -> Any:
        return read()

    def upload(self, name: str, size: int, pieces: Iterable[bytes]) -> str:
        assert b"".join(pieces)
        number = f"file-{len(self.files)}"
        return str(self.did("upload", lambda: self.files.setdefault(name, number)))

    def files_named(self, name: str) -> list[str]:
        found: list[str] = self.did("files_named", lambda: [*filter(None, [self.files.get(name)])])
        return found + self.late

    def create(self, file_id: str, name: str, model: str) -> RemoteBatch:
        assert file_id in self.files.values() and model == "m"

        def effect() -> RemoteBatch:
            assert name not in self.batches, "a batch is created twice"
            self.batches[name] = f"batch_{len(self.batches)}"
            return RemoteBatch(self.batches[name], State.RUNNING, name)

        made: RemoteBatch = self.did("create", effect)
        return made

    def find(self, name: str) -> RemoteBatch | None:
        self.tick()
        found = self.batches.get(name)
        return RemoteBatch(found, State.RUNNING, name) if found else None

    def look(self, batch_id: str) -> RemoteBatch:
        self.tick()
        self.fails("look")
        files = () if self.state is State.FAILED else self.results
        return RemoteBatch(batch_id, self.state, done=50_000, files=files, codes=self.codes)

    def cancel(self, batch_id: str) -> None:
        self.tick()
        self.cancelled.append(batch_id)
        if self.obedient:
            self.state = State.CANCELLED

    def download(self, file_id: str, calls: int, came: Callable[[int], object]) -> Iterator[bytes]:
        self.tick()
        self.fails("download")
        data = b"".join(self.output)
        yield data[:7]
        yield data[7:]
        self.tick()

    def delete(self, file_id: str) -> None:
        self.tick()
        self.fails("delete")
        self.deleted.append(file_id)
        self.tick()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def result(call: str, status: int = 200, **body: Any) -> bytes:
    response = {"status_code": status, "body": body}
    return json.dumps({"custom_id": call, "response": response, "error": None}).encode() + b"\n"


@pytest.fixture
def file(tmp_path: Path) -> BatchFile:
    made = BatchFile(
        tmp_path, "0001-000", "svc-run-000000-0001-000", "own", "m", len(CALLS), size=1
    )
    lines = [f'{{"custom_id":"{call}","body":{{}}}}\n' for call in CALLS]
    made.calls.write_text("".join(lines))
    return made


def run(file: BatchFile, api: Any, clock: Clock, seconds: float = 1_000.0) -> Sending:
    """A process that brings a batch on its way until it is over, or its time is."""
    sending = Sending(file, api, 1.0, clock, now=clock)
    advance(sending, clock, seconds)
    return sending


def advance(sending: Sending, clock: Clock, seconds: float) -> None:
    """Bring a batch on its way until it is over, or the time is."""
    end = clock.now + seconds
    while not sending.cleared and clock.now < end:
        sending.step()
        clock.now += max(0.5, seconds / 2_000)


def replies(file: BatchFile) -> dict[str, tuple[int, Any]]:
    rows = [line.split(b" ", 2) for line in file.replies.read_bytes().splitlines()]
    return {call.decode(): (int(status), json.loads(body)) for call, status, body in rows}


def test_results_in_any_order_are_entered_with_a_line_for_what_has_none(file: BatchFile) -> None:
    odd = [b"no json\n", b"[]\n", b'{"custom_id": 3}\n', result("of another batch")]
    expired = json.dumps({"custom_id": CALLS[0], "response": None, "error": {"code": "x"}})
    told = (result(CALLS[2], 400, error="no"), *odd, result(CALLS[1], a="ä\n"), result(CALLS[1]))
    api = Api(output=(*told, expired.encode()))
    assert run(file, api, Clock()).over
    assert replies(file) == {
        CALLS[0]: (0, {}),
        CALLS[1]: (200, {"a": "ä\n"}),
        CALLS[2]: (400, {"error": "no"}),
    }
    assert api.deleted == ["file-0", "out"] and not file.calls.exists()


def test_no_more_calls_are_done_than_there_are(file: BatchFile) -> None:
    api, clock = Api(state=State.RUNNING), Clock()
    assert run(file, api, clock, 60.0).done == file.lines == 3


def too_long(head: bytes) -> bytes:
    """A line that begins so, whose rest would be the result of another call."""
    padding = b"x" * (limits.REPLY_BYTES - len(head) - 100)
    long = b'{%s,"padding":"%s' % (head, padding)
    # A model can write what looks like the result of another call.
    return long + b" " * (limits.REPLY_BYTES - len(long)) + result(CALLS[1], forged=True)


@pytest.mark.parametrize(
    "head",
    [
        b'"custom_id":"%s"',
        b'"id": "batch_req_1", "custom_id": "%s"',
        b' "id" : "" ,\t"custom_id" : "%s"',
    ],
)
def test_of_a_line_that_is_too_long_only_the_call_is_read(file: BatchFile, head: bytes) -> None:
    """Its call is not sent again, since it would have as long a reply."""
    api = Api(output=(too_long(head % CALLS[0].encode()), result(CALLS[2])))
    assert run(file, api, Clock()).over
    assert replies(file) == {CALLS[0]: (200, None), CALLS[1]: (0, {}), CALLS[2]: (200, {})}


@pytest.mark.parametrize(
    "head",
    [
        b'"response":{"body":"\\"custom_id\\":\\"%s\\""},"custom_id":"%s"',
        b'"id":"%s","error":{},"custom_id":"%s"',
        b'"id":"\\",\\"custom_id\\":\\"%s","custom_id":"%s"',
        b'"id":"%s' + 257 * b"x" + b'","custom_id":"%s"',
        b'"custom_id":["%s","%s"]',
    ],
)
def test_a_line_that_is_too_long_may_not_say_of_which_call_it_is(
    file: BatchFile, head: bytes
) -> None:
    api = Api(output=(too_long(head % (CALLS[1].encode(), CALLS[0].encode())), result(CALLS[2])))
    assert run(file, api, Clock()).over
    assert replies(file) == {CALLS[0]: (0, {}), CALLS[1]: (0, {}), CALLS[2]: (200, {})}


def test_results_are_read_whose_numbers_are_written_shorter_than_python_writes_them(
    file: BatchFile,
) -> None:
    """As JavaScript and Rust write those of a long, sure reply: 1e-7."""
    written = b'{"a":[%s]}' % b",".join([b"-1e-7"] * 5_000)
    results = tuple(result(call).replace(b"{}", written) for call in CALLS)
    assert run(file, Api(output=results), Clock()).over
    assert replies(file) == dict.fromkeys(CALLS, (200, {"a": [-1e-7] * 5_000}))


def test_of_a_file_that_is_too_long_the_results_count_that_were_read(
    file: BatchFile, caplog: pytest.LogCaptureFixture
) -> None:
    class Endless(Api):
        def download(
            self, file_id: str, calls: int, came: Callable[[int], object]
        ) -> Iterator[bytes]:
            yield from super().download(file_id, calls, came)
            raise Overlong("the file of results is too long")

    api = Endless(output=(result(CALLS[0]), result(CALLS[1]), result(CALLS[2])[:50]))
    assert run(file, api, Clock()).over
    assert replies(file) == {CALLS[0]: (200, {}), CALLS[1]: (200, {}), CALLS[2]: (0, {})}
    assert "too long to be read to the end" in caplog.text


def test_a_result_takes_little_more_room_than_it_came_with(file: BatchFile) -> None:
    texts = {"a": "Grüße 😀", "half": "\ud83d"}
    swollen = result(CALLS[1]).replace(b"{}", b"[" + b",".join([b"1e15"] * 100) + b"]")
    failed = result(CALLS[2], 500, error="x" * limits.BATCH_FAILURE_BYTES)
    came = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    kept = came.encode("utf-8", "backslashreplace")
    whole = result(CALLS[0]).replace(b"{}", kept)
    assert run(file, Api(output=(whole, swollen, failed)), Clock()).over
    assert replies(file) == {CALLS[0]: (200, texts), CALLS[1]: (0, {}), CALLS[2]: (0, {})}
    assert kept in file.replies.read_bytes()


def test_a_process_that_ends_at_any_instant_creates_no_batch_twice(
    file: BatchFile, tmp_path: Path
) -> None:
    output = tuple(result(call) for call in CALLS)
    whole = file.calls.read_text()
    untouched = Api(output=output)
    run(file, untouched, Clock())
    assert untouched.steps >= 8
    for instant in range(untouched.steps):
        for path in tmp_path.iterdir():
            path.unlink()
        file.calls.write_text(whole)
        api, clock = Api(killed_at=instant, output=output), Clock()
        with pytest.raises(Killed):
            run(file, api, clock)
        assert run(file, api, clock).over
        assert len(api.batches) == len(api.files) == 1
        # Also of one that ended between its results and its last word to the provider.
        assert set(api.deleted) == {"file-0", "out"} and not file.calls.exists()
        assert replies(file) == {call: (200, {}) for call in CALLS}


def test_a_creation_whose_response_was_lost_is_looked_for_before_another(file: BatchFile) -> None:
    lost = [True]

    def fails(method: str) -> None:
        if method == "create" and lost.pop() if lost else False:
            # It takes place a little later, when nobody waits for the response any more.
            api.batches[f"{file.name}-0"] = "batch_late"
            raise ServerTrouble("the connection broke")

    api = Api(output=tuple(map(result, CALLS)), fails=fails)
    assert run(file, api, Clock()).over
    assert api.batches == {f"{file.name}-0": "batch_late"}


@pytest.mark.parametrize("refused", [0, 1, 2, 3])
@pytest.mark.parametrize("given_up", [False, True])
def test_a_file_that_came_to_be_late_is_deleted_with_the_one_that_took_its_place(
    file: BatchFile, given_up: bool, refused: int
) -> None:
    api, clock = Api(state=State.RUNNING), Clock()
    sending = uploaded_again(file, api, clock)
    left_to_refuse = ["delete"] * refused

    def fails(method: str) -> None:
        if method in left_to_refuse:
            left_to_refuse.remove(method)
            raise ServerTrouble("not now")

    api.fails = fails
    api.late = ["file-late"]
    if given_up:
        assert any(sending.give_up() for _ in range(refused + 1))
    else:
        api.state = State.ENDED
        advance(sending, clock, 500.0)
    assert sending.cleared or given_up
    assert {"file-late", *api.files.values()} <= set(api.deleted)


def test_files_that_are_known_are_deleted_though_late_ones_cannot_be_looked_for(
    file: BatchFile,
) -> None:
    api, clock = Api(state=State.RUNNING, output=tuple(map(result, CALLS))), Clock()
    sending = uploaded_again(file, api, clock)

    def fails(method: str) -> None:
        if method == "files_named":
            raise ServerTrouble("no list today")

    api.fails, api.state = fails, State.ENDED
    advance(sending, clock, 100.0)
    assert sending.over and not sending.cleared
    assert {"out", *api.files.values()} == set(api.deleted)


def test_a_batch_that_runs_again_after_it_had_ended_is_cancelled_when_it_is_given_up(
    file: BatchFile,
) -> None:
    def fails(method: str) -> None:
        if method == "download":
            raise ServerTrouble("not now")

    api, clock = Api(output=tuple(map(result, CALLS)), fails=fails), Clock()
    sending = run(file, api, clock, 10.0)
    assert not sending.over and "out" in json.loads(file.record.read_text())["left"]
    api.state = State.RUNNING
    assert sending.give_up() and api.cancelled == ["batch_0"]
    assert {"out", *api.files.values()} == set(api.deleted)


def test_files_that_are_known_are_deleted_though_their_batch_cannot_be_looked_at_any_more(
    file: BatchFile,
) -> None:
    failing = {"download"}

    def fails(method: str) -> None:
        if method in failing:
            raise ServerTrouble("not now")

    api, clock = Api(output=tuple(map(result, CALLS)), fails=fails), Clock()
    sending = run(file, api, clock, 10.0)
    failing.add("look")
    assert not sending.give_up()
    assert {"out", *api.files.values()} == set(api.deleted)
    # It may run again, as a batch of a provider that lies does.
    failing.clear()
    api.state = State.RUNNING
    assert sending.give_up() and api.cancelled == ["batch_0"]


def test_a_provider_that_names_other_files_at_every_look_has_few_of_them_noted(
    file: BatchFile,
) -> None:
    def fails(method: str) -> None:
        if method == "look":
            api.results = tuple(f"out-{api.steps}-{number}" for number in range(50))
        if method == "download":
            raise ServerTrouble("not now")

    api, clock = Api(output=tuple(map(result, CALLS)), fails=fails), Clock()
    sending = run(file, api, clock, 1_000.0)
    left = json.loads(file.record.read_text())["left"]
    assert not sending.over and len(set(left)) == 100 and set(api.files.values()) < set(left)


def uploaded_again(file: BatchFile, api: Api, clock: Clock) -> Sending:
    """A batch whose file was uploaded twice, as the first upload had no response."""
    uploads = 0

    def fails(method: str) -> None:
        nonlocal uploads
        uploads += method == "upload"
        if method == "upload" and uploads == 1:
            raise ServerTrouble("no response")

    api.fails = fails
    sending = run(file, api, clock, 100.0)
    assert uploads == 2
    return sending


def test_a_creation_that_did_not_take_place_is_tried_again(file: BatchFile) -> None:
    failures: list[ProviderError] = [ServerTrouble("down"), Throttled("slow", retry_after=5)]

    def fails(method: str) -> None:
        if method == "create" and failures:
            raise failures.pop()

    api = Api(output=tuple(map(result, CALLS)), fails=fails)
    assert run(file, api, Clock()).over and len(api.batches) == 1


def test_creations_without_a_response_are_few(file: BatchFile) -> None:
    """The provider may carry out each, though its list never has any."""
    created: list[float] = []

    def fails(method: str) -> None:
        if method == "create":
            created.append(clock.now)
            raise ServerTrouble("502")

    api, clock = Api(fails=fails), Clock()
    sending = Sending(file, api, 30.0, clock, now=clock, patience=UNATTENDED)
    with pytest.raises(RoundsEnd, match=r"may have created batch svc-.*, but each of 5 replies"):
        advance(sending, clock, 86_400.0)
    assert len(created) == CREATIONS
    # A provider whose creations fail for a quarter of an hour is waited for.
    assert created[-1] - created[0] > 900
    # Nor is another one created after a new start, whose list fails meanwhile.
    with pytest.raises(RoundsEnd):
        run(file, api, clock, 86_400.0)
    assert len(created) == CREATIONS


def test_a_creation_whose_reply_cannot_be_read_is_not_repeated(file: BatchFile) -> None:
    created: list[str] = []

    def fails(method: str) -> None:
        if method == "create":
            created.append(method)
            raise BadReply("no batch in the reply")

    api, clock = Api(output=tuple(map(result, CALLS)), fails=fails), Clock()
    for _ in range(2):
        with pytest.raises(RoundsEnd, match=r"may have created batch svc-.* could not be read"):
            run(file, api, clock)
    assert len(created) == 1
    # Once the list has it, the run goes on with it.
    api.batches[f"{file.name}-0"] = "batch_0"
    assert run(file, api, clock).over and len(created) == 1


def test_a_provider_that_is_down_is_waited_for_but_not_for_ever(file: BatchFile) -> None:
    clock = Clock()
    down_until = [600.0]

    def fails(method: str) -> None:
        if method in ("look", "download") and clock.now < down_until[0]:
            raise ServerTrouble("down")

    api = Api(output=tuple(map(result, CALLS)), fails=fails)
    assert run(file, api, clock).over
    file.replies.unlink()
    file.calls.write_text("{}\n")
    api.files.clear()
    api.batches.clear()
    down_until[0] = 1e9
    with pytest.raises(RoundsEnd, match="could not be reached"):
        run(file, api, clock, 2 * ATTENDED.outage)


def test_a_key_that_is_refused_ends_the_rounds(file: BatchFile) -> None:
    def fails(method: str) -> None:
        raise KeyRefused("401")

    with pytest.raises(RoundsEnd, match="provider own: the model's provider does not accept"):
        run(file, Api(fails=fails), Clock())


@pytest.mark.parametrize("refusal", [KeyRefused("401"), NoCredit("402")])
def test_a_job_waits_as_long_as_its_provider_refuses_the_key_or_the_account(
    file: BatchFile, refusal: ProviderError
) -> None:
    """A server may be started once without what it had before, and much is paid already."""
    refused_until = [30.0 * 86_400.0]

    def fails(_method: str) -> None:
        if clock.now < refused_until[0]:
            raise refusal

    api, clock = Api(output=tuple(map(result, CALLS)), fails=fails), Clock()
    sending = Sending(file, api, 1.0, clock, clock, patience=UNATTENDED)
    advance(sending, clock, 3_600.0)
    assert sending.refusal == refusal.as_api_error().message
    advance(sending, clock, refused_until[0] + 3_600.0)
    assert sending.over and sending.refusal is None


def test_a_provider_that_says_to_come_back_in_a_week_is_looked_at_much_sooner(
    file: BatchFile,
) -> None:
    """What it has answered would be lost to a job that expires until then."""
    busy = [True]

    def fails(_method: str) -> None:
        if busy.pop() if busy else False:
            raise ServerTrouble("503", retry_after=604_000.0)

    api, clock = Api(output=tuple(map(result, CALLS)), fails=fails), Clock()
    sending = Sending(file, api, 1.0, clock, clock, patience=UNATTENDED)
    advance(sending, clock, 300.0)
    assert sending.over


def test_a_job_bears_for_an_hour_that_its_batch_is_not_shown(file: BatchFile) -> None:
    """A gateway may say once that there is no such path."""
    gone = [False]

    def fails(method: str) -> None:
        if method == "look" and gone[0]:
            raise Gone("404")

    api, clock = Api(state=State.RUNNING, fails=fails), Clock()
    sending = Sending(file, api, 1.0, clock, clock, patience=UNATTENDED)
    advance(sending, clock, 60.0)
    gone[0] = True
    advance(sending, clock, 1_800.0)
    assert sending.refusal == "it has no such batch, file or path"
    gone[0] = False
    advance(sending, clock, 120.0)
    assert sending.refusal is None
    gone[0] = True
    with pytest.raises(RoundsEnd, match="it has no such batch"):
        advance(sending, clock, 2 * UNATTENDED.look)


def test_a_job_ends_where_its_provider_will_not_take_the_file(file: BatchFile) -> None:
    def fails(method: str) -> None:
        if method == "create":
            raise Refused("400")

    api, clock = Api(fails=fails), Clock()
    with pytest.raises(RoundsEnd, match="refused the call"):
        advance(Sending(file, api, 1.0, clock, clock, patience=UNATTENDED), clock, 60.0)


def test_a_full_queue_is_waited_for_and_another_failure_ends_the_rounds(file: BatchFile) -> None:
    api = Api(state=State.FAILED, codes=("token_limit_exceeded",))
    clock = Clock()
    run(file, api, clock, 150.0)
    # Each of these failed whole, so that nothing was paid for it.
    assert list(api.batches) == [f"{file.name}-{attempt}" for attempt in range(3)]
    assert len(api.files) == 1
    api.codes = ("model_not_found", "Log-in-at:evil.example")
    with pytest.raises(RoundsEnd, match=r"refused batch svc-\S+ \(model_not_found\)$"):
        run(file, api, clock)
    api.state, api.output = State.ENDED, tuple(map(result, CALLS))
    assert run(file, api, clock).over


def test_a_batch_that_was_cancelled_elsewhere_ends_the_rounds_with_its_results(
    file: BatchFile,
) -> None:
    api = Api(state=State.CANCELLED, output=(result(CALLS[0]),))
    with pytest.raises(RoundsEnd, match=r"batch svc-\S+ was cancelled at provider own"):
        run(file, api, Clock())
    assert replies(file)[CALLS[0]] == (200, {}) and replies(file)[CALLS[1]] == (0, {})


def test_files_that_the_provider_does_not_delete_at_once_are_deleted_later(file: BatchFile) -> None:
    failing = [True]

    def fails(method: str) -> None:
        if method == "delete" and failing[0]:
            raise ServerTrouble("down")

    api, clock = Api(output=tuple(map(result, CALLS)), fails=fails), Clock()
    sending = run(file, api, clock, 30.0)
    assert sending.over and not sending.cleared and not file.calls.exists()
    failing[0] = False
    assert run(file, api, clock).cleared
    assert api.deleted == ["file-0", "out"]


@pytest.mark.parametrize("obedient", [True, False])
def test_a_batch_long_after_its_window_is_cancelled_and_not_waited_for(
    file: BatchFile, obedient: bool
) -> None:
    api, clock = Api(state=State.RUNNING, output=(result(CALLS[0]),), obedient=obedient), Clock()
    run(file, api, clock, 25 * 3_600)
    assert api.cancelled == []
    if obedient:
        assert run(file, api, clock, 2 * 3_600).over
        # The others are asked again.
        assert [status for status, _ in replies(file).values()] == [200, 0, 0]
    else:
        with pytest.raises(RoundsEnd, match="has not ended batch svc-"):
            run(file, api, clock, 4 * 3_600)
    assert set(api.cancelled) == {"batch_0"}


def test_a_queue_that_is_full_for_a_day_ends_the_rounds(file: BatchFile) -> None:
    api = Api(state=State.FAILED, codes=("token_limit_exceeded",))
    with pytest.raises(RoundsEnd, match="queue of provider own was full for 24 hours"):
        run(file, api, Clock(), 25 * 3_600)


def test_results_leave_others_room_on_the_disk_and_come_later(file: BatchFile) -> None:
    api, clock = Api(output=tuple(result(call) for call in CALLS)), Clock()
    # The disk fills with the second result, and has room again after that.
    free = iter([501_000_000, 499_000_000])
    sending = Sending(
        file, api, 1.0, clock, now=clock, free_bytes=lambda _: next(free, 501_000_000)
    )
    with pytest.raises(OSError, match="No space left") as raised:
        advance(sending, clock, 1_000.0)
    assert raised.value.errno == errno.ENOSPC
    assert not [path for path in file.folder.iterdir() if "replies" in path.name]
    assert api.deleted == []
    advance(sending, clock, 1_000.0)
    assert sending.cleared and file.replies.read_text().count(" 200 ") == len(CALLS)


def test_wherever_a_batch_is_on_its_way_nothing_of_it_is_left_once_it_is_given_up(
    file: BatchFile, tmp_path: Path
) -> None:
    output = tuple(result(call) for call in CALLS)
    whole = file.calls.read_text()
    for instant in range(30):
        for path in tmp_path.iterdir():
            path.unlink()
        file.calls.write_text(whole)
        api, clock = Api(killed_at=instant, output=output, state=State.RUNNING), Clock()
        with suppress(Killed):
            run(file, api, clock, 20.0)
        api.killed_at = -1
        sending = Sending(file, api, 1.0, clock, now=clock)
        if not sending.give_up():
            # It may still come to be, as its creation had no response.
            clock.now += CREATED_WITHIN_S
            assert sending.give_up()
        assert set(api.files.values()) <= set(api.deleted)
        assert api.state is State.CANCELLED or not api.batches
        assert list(tmp_path.iterdir()) == []
