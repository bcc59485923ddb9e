"""One bounded HTTP call to a provider, which ends in a completion or a `ProviderError`."""

from __future__ import annotations

import http.client
import logging
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import requests
import urllib3.exceptions

from svc import limits
from svc.deadline import Deadline
from svc.logs import Sparingly
from svc.meter import SpareOfPeer
from svc.phrases import visible
from svc.providers.bodies import ChatCall
from svc.providers.busy_calls import BusyCall, Peer
from svc.providers.catalog import Provider
from svc.providers.encoded import Body, encoded
from svc.providers.estimates import is_believable
from svc.providers.failures import (
    BadReply,
    BrokenReply,
    CallTimedOut,
    Cancelled,
    KeptBusy,
    ProviderError,
    Refused,
    Resting,
    ServerTrouble,
    Unread,
)
from svc.providers.long_replies import TOO_MUCH, ComingReply, LongReplies
from svc.providers.prices import TokenUsage, cost_usd
from svc.providers.protocol import DecisionCall
from svc.providers.protocols import PROTOCOLS
from svc.providers.redaction import Allowance, Redactor
from svc.providers.refusals import SentCall
from svc.providers.replies import (
    Completion,
    Reply,
    check_payload,
    decoded,
    note_usage,
    read_json,
    read_models,
)
from svc.providers.traits import NO_CORRECTIONS, UNKNOWN, Corrections, TraitMemory
from svc.providers.transport import Encoded, ReplyBroke, TooMuch, Transport, trusted
from svc.providers.watchdog import Watch, Watchdog
from svc.records import Model
from svc.wire import TooLong

# The time for reading a provider's list of models.
LIST_TIMEOUT_S = 10.0

_NO_MORE: Mapping[str, str] = {}
_EMPTY_CALL = ChatCall(messages=(), max_tokens=0)

# What providers say of a file may hold any part of it, so that no word of theirs is logged.
UNTOLD_CALL = ChatCall(messages=(), max_tokens=0, deny_data_collection=True)

_log = logging.getLogger(__name__)


class Client:
    """Calls every provider of the catalogue from any number of threads."""

    def __init__(
        self,
        catalog: Mapping[str, Provider],
        pool_size: int,
        now: Callable[[], float] = time.time,
        traits: TraitMemory | None = None,
    ) -> None:
        """`pool_size` calls may run at once; `now` is in seconds since the epoch.

        `traits` is what is known of models, shared with other processes; without it this client
        keeps its own. Raises `SettingsError` when the environment names a CA bundle that
        cannot be read.
        """
        self.traits = traits or TraitMemory()
        self._catalog = catalog
        self._now = now
        self._watchdog = Watchdog()
        # What all calls of a caller to a provider may take of a processor beyond what is usual. Of
        # nearly all there is none.
        self._peers: dict[Peer, SpareOfPeer] = {}
        self._allowance, self._failures = Allowance(), Sparingly(limits.FAILURES_LOGGED)
        secure = any(provider.url.startswith("https:") for provider in catalog.values())
        tls = trusted() if secure else None
        self._long = LongReplies()
        self._transports = {
            name: Transport(provider.url, pool_size, tls, provider.local)
            for name, provider in catalog.items()
        }

    def call(
        self,
        model: Model,
        call: ChatCall | DecisionCall,
        timeout_s: float,
        key: str | None = None,
        deadline: Deadline | None = None,
        corrections: Corrections = NO_CORRECTIONS,
        headers: Mapping[str, str] = _NO_MORE,
    ) -> Completion:
        """Make one HTTP attempt in this thread, over within `timeout_s` whatever the peer does.

        `key` is a project's own key and counts on the aggregator only. The call is cut off when
        `deadline` is cancelled. `corrections` are what earlier attempts of this call were
        refused for; those that last are remembered when this one succeeds. `headers` are sent
        besides those of every call.
        Raises a `ProviderError`.
        """
        provider = self._catalog[model.provider]
        protocol = PROTOCOLS[provider.kind]
        key = key if key is not None and provider.aggregator else provider.key
        deadline = deadline or Deadline(timeout_s)
        try:
            traits = self.traits.of(model.id)
            if corrections is not NO_CORRECTIONS:
                traits = traits.corrected(corrections.all)
            body = protocol.body(provider, model.name, call, traits)
            data = encoded(body, call.images)
            limit = min(timeout_s, provider.timeout_s)
            with self._long.coming(model, deadline) as coming:
                redactor = Redactor(call, key, self._allowance, coming.has_left)
                sent = SentCall(body, redactor, provider.aggregator)
                asked = (protocol.path, key, data, limit, deadline, coming, headers)
                reply = self._asked(model, *asked)
                with self._long.reading(reply.body, model, deadline):
                    completion = self._completion(reply, model, call, sent, corrections)
                coming.keep(completion.kept_bytes)
                return completion
        except ProviderError as error:
            self.tell("%s: %s: %s", visible(model.id), type(error).__name__, error)
            raise

    def provider(self, model: Model) -> Provider:
        """The provider of a resolved model."""
        return self._catalog[model.provider]

    def cost_usd(self, model: Model, usage: TokenUsage) -> float:
        """Dollars for what a call of this model used."""
        return cost_usd(self._catalog[model.provider], model.name, usage)

    def list_models(self, provider: Provider, timeout_s: float = LIST_TIMEOUT_S) -> list[str]:
        """The ids that the provider's `/models` lists; raises a `ProviderError`."""
        sent = SentCall(
            {}, Redactor(_EMPTY_CALL, provider.key, self._allowance), provider.aggregator
        )
        try:
            deadline, listed = Deadline(timeout_s), Model("", provider.name, "")
            with self._long.coming(listed, deadline) as coming:
                asked = ("GET", "/models", provider.key, None, timeout_s, deadline, coming)
                reply = self._exchange(provider, *asked)
                with self._long.reading(reply.body, listed, deadline):
                    return read_models(reply, sent, self._now())
        except ProviderError as error:
            self.tell("models of %s: %s: %s", provider.name, type(error).__name__, error)
            raise

    def tell(self, line: str, *parts: object) -> None:
        """Log what a call failed with, unless there were too many within this minute."""
        if left_out := self._failures.left_out():
            _log.warning("%d failures of calls were left out of the log", left_out)
        if self._failures.take():
            _log.warning(line, *parts)

    def begin(self) -> None:
        """Start the thread that all calls need, before others take what the system allows.

        Raises `RuntimeError` where it allows no further one.
        """
        self._watchdog.begin()

    def cancel_all(self) -> None:
        """End every call that is under way with `Cancelled`."""
        self._watchdog.cancel_all()

    def close(self) -> None:
        """End every call, also those to come, and close all connections."""
        self._watchdog.close()
        for transport in self._transports.values():
            transport.close()

    def _asked(
        self,
        model: Model,
        path: str,
        key: str | None,
        data: Body,
        timeout_s: float,
        deadline: Deadline,
        coming: ComingReply,
        headers: Mapping[str, str],
    ) -> Reply:
        """The provider's reply to a body."""
        asked = ("POST", path, key, data, timeout_s, deadline, coming, headers)
        return self._exchange(self._catalog[model.provider], *asked)

    def _completion(
        self,
        reply: Reply,
        model: Model,
        call: ChatCall | DecisionCall,
        sent: SentCall,
        corrections: Corrections,
    ) -> Completion:
        """The completion in a reply. The error for any other says what the call used.

        Tokens that it cannot have used are left out, as if nothing was said of them.
        """
        protocol = PROTOCOLS[self._catalog[model.provider].kind]
        payload = decoded(reply.body)
        try:
            check_payload(payload, reply, sent, self._now())
            if corrections is not NO_CORRECTIONS and corrections.lasting != UNKNOWN:
                self.traits.learn(model.id, corrections.lasting)
            completion = protocol.read(payload, call)
        except ProviderError as error:
            note_usage(error, payload, protocol.counts)
            if not is_believable(call, error.usage):
                error.usage = error.usage._replace(input_tokens=0, output_tokens=0)
            raise
        if is_believable(call, completion):
            return completion
        return replace(completion, input_tokens=0, output_tokens=0)

    def _exchange(
        self,
        provider: Provider,
        method: str,
        path: str,
        key: str | None,
        body: Body | None,
        timeout_s: float,
        deadline: Deadline,
        coming: ComingReply,
        headers: Mapping[str, str] = _NO_MORE,
    ) -> Reply:
        if timeout_s <= 0:
            raise _uncharged(CallTimedOut("no time was left for the call"))
        transport, peer = self._transports[provider.name], (provider.name, deadline.effort.caller)
        of_all = self._peers.get(peer)
        if of_all is not None and (wait_s := of_all.wait_s()):
            raise Resting("its connections took too much of a processor", wait_s)
        busy = BusyCall(self._peers, peer, coming)
        with self._watchdog.watching(
            timeout_s, deadline, provider.name, coming.meter, busy.is_too_busy
        ) as watch:
            try:
                if watch.cancelled:
                    raise Cancelled("nobody waits for the call any more")
                take = partial(coming.take, lambda: not watch.ended)
                reply = transport.send(method, path, key, body, timeout_s, headers, take)
                if not watch.ended:
                    return reply
                failure = _failure(watch, None)
            except Exception as error:  # noqa: BLE001 - whatever the peer makes of it
                failure = _failure(watch, error)
                _free(error)
            finally:
                coming.meter.count()
                busy.end()
        # Raised inside the handler, it would keep the other error alive, and all that was read.
        raise failure


def _was_there(error: requests.ConnectionError) -> bool:
    """Whether there was a connection, so that the provider may have read the call."""
    return any(isinstance(one, urllib3.exceptions.ProtocolError) for one in error.args)


def _free(error: BaseException | None) -> None:
    """Let go of what an error's frames hold: the body that was sent, with its images.

    Those of urllib3 hold the error too, and such a circle would stay until all objects are looked
    through for some.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _failure(watch: Watch, error: Exception | None) -> ProviderError:
    """The project's own error, which is not charged where nothing was sent."""
    failure = _own(watch, error)
    return failure if watch.asked else _uncharged(failure)


def _uncharged(failure: ProviderError) -> ProviderError:
    """The failure of a call of which the provider has nothing."""
    failure.may_be_charged = False
    return failure


def _own(watch: Watch, error: Exception | None) -> ProviderError:
    """The project's own error; others name hosts and values, so only their type is kept."""
    if watch.cancelled:
        return Cancelled("cut off")
    timeouts = (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)
    if watch.kept_busy:
        return KeptBusy("its connection took more of a processor than replies may")
    if watch.expired or isinstance(error, timeouts):
        return CallTimedOut("the call took too long")
    return broken(error)


def refusal(reply: Reply, redactor: Redactor, now: float) -> ProviderError:
    """What an error reply to a request means that was no call of a model."""
    try:
        read_json(reply, SentCall({}, redactor), now)
    except ProviderError as error:
        return error
    return BadReply(f"{reply.status}: not what was asked for")


def broken(error: Exception | None) -> ProviderError:
    """What an error of a connection means; only its type is kept."""
    if isinstance(error, Unread):
        return error
    kind = type(error).__name__
    if isinstance(error, ReplyBroke):
        return BrokenReply(f"the connection broke ({type(error.__cause__).__name__})")
    if isinstance(error, requests.ConnectionError) and _was_there(error):
        return BrokenReply(f"the connection broke ({kind})")
    if isinstance(error, TooLong):
        return BadReply("the reply is too long")
    if isinstance(error, TooMuch):
        return Unread(TOO_MUCH)
    if isinstance(error, Encoded):
        return BadReply("the reply could not be decompressed")
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Refused("the provider's certificate is not trusted")
    # A URL or a header is malformed. This stands first because some such errors are OSErrors too.
    if isinstance(error, ValueError):
        return Refused(f"the call could not be made ({kind})")
    breaks = (requests.ConnectionError, urllib3.exceptions.HTTPError, http.client.HTTPException)
    if isinstance(error, (*breaks, requests.exceptions.ChunkedEncodingError, OSError)):
        return ServerTrouble(f"the connection broke ({kind})")
    return Refused(f"the call could not be made ({kind})")
