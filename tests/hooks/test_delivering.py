"""What is due is sent, in order by subject, until it is taken or given up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler

import pytest

from svc.hooks import delivering
from svc.hooks.delivering import OF_A_HOOK, THREADS, Deliveries
from svc.hooks.sending import Resting, Sender, Undelivered
from svc.hooks.targets import Target
from svc.store import Hooks, StorageError
from tests.hooks.conftest import World
from tests.hooks.receiver import Received, Receiver
from tests.store.holding import until

WAIT_S = 10.0


class Sent:
    """Takes what is sent, and answers by a script; the last status goes on."""

    def __init__(self, *statuses: int | Exception) -> None:
        self.statuses = list(statuses or [204])
        self.posts: list[tuple[Target, bool, bytes, Mapping[str, str]]] = []
        self.go = threading.Event()
        self.go.set()

    def post(
        self, target: Target, allow_private: bool, body: bytes, headers: Mapping[str, str]
    ) -> int:
        status = self.statuses[min(len(self.posts), len(self.statuses) - 1)]
        self.posts.append((target, allow_private, body, headers))
        assert self.go.wait(WAIT_S)
        if isinstance(status, Exception):
            raise status
        return status

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for *_, headers in self.posts]


class Desk:
    """Deliveries that are waited for."""

    def __init__(self, world: World, sent: Sent) -> None:
        self.sent = sent
        self.deliveries = Deliveries(world.hooks, world.events, sent, world.clock, lambda: 0.5)

    def turn(self) -> None:
        self.deliveries.start()
        self.deliveries.wait(WAIT_S)


@pytest.fixture
def desks() -> Iterator[list[Desk]]:
    made: list[Desk] = []
    yield made
    for desk in made:
        desk.sent.go.set()
        desk.deliveries.close(WAIT_S)


def desk_of(desks: list[Desk], world: World, *statuses: int | Exception) -> Desk:
    desks.append(Desk(world, Sent(*statuses)))
    return desks[-1]


def test_events_of_a_subject_are_sent_one_after_the_other(world: World, desks: list[Desk]) -> None:
    desk = desk_of(desks, world)
    world.happens(world.add(), "1", "2", "3")
    first, *_ = world.events.due()
    for count in (1, 2, 3):
        desk.turn()
        assert len(desk.sent.posts) == count
    assert desk.sent.ids[0] == first.id and len(set(desk.sent.ids)) == 3
    assert world.waiting == 0
    (hook,) = world.hooks.all()
    assert hook.delivered_at == int(world.now * 1000)


def test_a_failure_is_tried_again_with_the_same_id_and_holds_up_its_subject_alone(
    world: World, desks: list[Desk]
) -> None:
    desk = desk_of(desks, world, 500, 204)
    hook = world.add()
    world.happens(hook, "1", "2")
    desk.turn()
    desk.turn()
    assert len(desk.sent.posts) == 1
    world.happens(hook, "3", subject="b")
    desk.turn()
    assert len(desk.sent.posts) == 2
    world.now += 5.6
    desk.turn()
    assert desk.sent.ids[2] == desk.sent.ids[0]
    desk.turn()
    assert world.waiting == 0


def test_a_receiver_that_rests_is_asked_after_that_and_nothing_counts_as_an_attempt(
    world: World, desks: list[Desk]
) -> None:
    desk = desk_of(desks, world, Resting(25.0), 204)
    world.happens(world.add(), "1")
    desk.turn()
    (hook,) = world.hooks.all()
    assert hook.waiting == 1 and "asked again later" in (hook.failure or "")
    world.now += 24.0
    desk.turn()
    assert len(desk.sent.posts) == 1
    world.now += 2.0
    (event,) = world.events.due()
    assert event.attempts == 0
    desk.turn()
    assert len(desk.sent.posts) == 2 and world.waiting == 0


@pytest.mark.parametrize("status", [199, 300, 307, 400, 404, 429, 500, 503])
def test_every_other_status_is_a_failure(world: World, desks: list[Desk], status: int) -> None:
    desk = desk_of(desks, world, status)
    world.happens(world.add(), "1")
    desk.turn()
    (hook,) = world.hooks.all()
    assert (hook.failure, hook.waiting) == (f"it answered {status}", 1)


def test_what_fails_for_three_days_is_given_up_and_the_next_goes(
    world: World, desks: list[Desk], caplog: pytest.LogCaptureFixture
) -> None:
    desk = desk_of(desks, world, Undelivered("it cannot be reached"))
    world.happens(world.add("https://example.com/rosebud"), "1", "2")
    began = world.now
    with caplog.at_level(logging.INFO):
        while not world.hooks.all()[0].given_up:
            desk.turn()
            world.now += 3_600
    assert world.now - began < 3 * 86_400 + 3_600
    assert len(set(desk.sent.ids)) == 1 and 8 < len(desk.sent.ids) < 14
    assert "is given up" in caplog.text and "rosebud" not in caplog.text
    desk.sent.statuses = [204]
    desk.turn()
    assert world.waiting == 0


def test_a_receiver_that_is_gone_disables_the_hook(world: World, desks: list[Desk]) -> None:
    desk = desk_of(desks, world, 410)
    world.happens(world.add(), "1")
    desk.turn()
    world.now += 86_400
    desk.turn()
    assert len(desk.sent.posts) == 1
    (hook,) = world.hooks.all()
    assert hook.disabled is not None and "410 Gone at 20" in hook.disabled


def test_a_hook_that_hangs_does_not_hold_up_others(world: World, desks: list[Desk]) -> None:
    desk = desk_of(desks, world)
    hanging, other = world.add("https://hangs.example/"), world.add("https://other.example/")
    for n in range(2 * THREADS):
        world.happens(hanging, f"{n}", subject=f"{n}")
    desk.sent.go.clear()
    for _ in range(3):
        desk.deliveries.start()
    until(lambda: len(desk.sent.posts) == OF_A_HOOK)
    world.happens(other, "1")
    desk.deliveries.start()
    until(lambda: len(desk.sent.posts) == OF_A_HOOK + 1)
    assert desk.sent.posts[-1][0].host == "other.example"


def test_hooks_of_a_project_that_hang_do_not_hold_up_other_projects(
    world: World, desks: list[Desk]
) -> None:
    desk = desk_of(desks, world)
    for n in range(THREADS):
        world.happens(world.add("https://hangs.example/"), f"{n}")
    desk.sent.go.clear()
    desk.deliveries.start()
    until(lambda: len(desk.sent.posts) == THREADS // 2)
    for project in ("bank", "lab"):
        world.happens(world.add(f"https://{project}.example/", project=project), "1")
    desk.deliveries.start()
    until(lambda: len(desk.sent.posts) == THREADS // 2 + 2)
    hosts = {target.host for target, *_ in desk.sent.posts[THREADS // 2 :]}
    assert hosts == {"bank.example", "lab.example"}
    desk.sent.go.set()
    while world.waiting:
        desk.turn()
    assert len(desk.sent.posts) == THREADS + 2


def test_what_is_under_way_is_not_sent_a_second_time(world: World, desks: list[Desk]) -> None:
    desk = desk_of(desks, world)
    world.happens(world.add(), "1")
    desk.sent.go.clear()
    for _ in range(3):
        desk.deliveries.start()
    desk.sent.go.set()
    desk.deliveries.wait(WAIT_S)
    assert len(desk.sent.posts) == 1


def test_without_the_master_key_events_wait_and_count_no_attempt(
    world: World, desks: list[Desk]
) -> None:
    world.happens(world.add(), "1")
    sent = Sent()
    keyless = Deliveries(Hooks(world.database, None), world.events, sent, world.clock)
    keyless.start()
    keyless.close(WAIT_S)
    (hook,) = world.hooks.all()
    assert sent.posts == [] and hook.failure is not None and "SVC_MASTER_KEY" in hook.failure
    world.now += delivering.UNREADABLE_S
    desk_of(desks, world).turn()
    assert world.waiting == 0


def test_what_cannot_be_stored_is_not_sent_again_at_once(
    world: World, desks: list[Desk], caplog: pytest.LogCaptureFixture
) -> None:
    class Full:
        def post(self, *_: object) -> int:
            raise StorageError("the disk is full")

    deliveries = Deliveries(world.hooks, world.events, Full(), world.clock)
    world.happens(world.add(), "1")
    deliveries.start()
    deliveries.wait(WAIT_S)
    deliveries.start()
    deliveries.close(WAIT_S)
    assert caplog.text.count("the disk is full") == 1
    assert world.waiting == 1


def test_a_real_receiver_gets_a_signature_that_the_official_library_takes(
    world: World,
) -> None:
    with Receiver() as receiver:
        world.happens(world.add(receiver.url), "1")
        deliveries = Deliveries(world.hooks, world.events, Sender(), time.time)
        deliveries.start()
        deliveries.close(WAIT_S)
        (received,) = receiver.journal
    assert received.verified(world.secret) == {"type": "drift"}
    assert received.headers["content-type"] == "application/json"
    assert received.headers["user-agent"].startswith("svc/")
    assert world.waiting == 0


def test_a_receiver_that_answers_500_and_then_200_gets_the_same_event_signed_anew(
    world: World,
) -> None:
    def answer(received: Received, n: int, handler: BaseHTTPRequestHandler) -> int:
        return 500 if n == 1 else 200

    with Receiver(answer) as receiver:
        world.happens(world.add(receiver.url), "1")
        deliveries = Deliveries(world.hooks, world.events, Sender(), world.clock)
        for _ in range(2):
            deliveries.start()
            deliveries.wait(WAIT_S)
            world.now += 6.1
        deliveries.close()
        first, second = receiver.journal
    assert first.id == second.id and first.body == second.body
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert world.waiting == 0


def test_a_private_address_is_looked_at_again_before_each_delivery(world: World) -> None:
    with Receiver() as receiver:
        world.happens(world.add(receiver.url, private=False), "1")
        deliveries = Deliveries(world.hooks, world.events, Sender(), world.clock)
        deliveries.start()
        deliveries.close(WAIT_S)
        assert receiver.journal == []
    failure = world.hooks.all()[0].failure
    assert failure is not None and "--allow-private" in failure
