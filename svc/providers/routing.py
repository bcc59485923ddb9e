"""From a model id to a provider and its own name for the model."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

from svc import limits
from svc.errors import ApiError, InvalidRequest, ModelUnavailable, NotConfigured
from svc.pins import Pin
from svc.providers.catalog import AGGREGATOR, Provider, how_to_configure
from svc.providers.failures import ProviderError
from svc.providers.prices import undated
from svc.records import Model

# How long it lasts, in seconds, until a list of models is read again that may tell more then.
LIST_AGAIN_S = 5.0

_HOW = "use @<provider>/<model>, or set a provider's key"


class Router:
    """Finds the provider of every model id, and the model of a request that names none."""

    def __init__(
        self,
        catalog: Mapping[str, Provider],
        default_model: str | None,
        list_models: Callable[[Provider], list[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`list_models` may raise `ProviderError`; it is called until it succeeds once.

        `clock` is in seconds.
        """
        self._catalog = catalog
        self._default_model = default_model
        self._list_models, self._clock = list_models, clock
        self._keyed = [
            provider
            for provider in catalog.values()
            if provider.hosted and provider.key is not None
        ]
        self._usual: Future[str] | None = None
        self._again_at = math.inf
        self._lock = threading.Lock()

    def provider(self, model: Model) -> Provider:
        """The provider of a resolved model."""
        return self._catalog[model.provider]

    def resolve(self, model_id: str) -> Model:
        """`@<provider>/<model>` by name, anything else by the default provider.

        Raises `InvalidRequest` for an id that is malformed or whose provider is not configured.
        """
        self._check(model_id)
        if not model_id.startswith("@"):
            return Model(model_id, self._plain().name, model_id)
        name, _, rest = model_id[1:].partition("/")
        if not name or not rest:
            raise InvalidRequest(f"model {model_id!r}: must be <model> or @<provider>/<model>")
        if name not in self._catalog:
            raise NotConfigured(
                f"model {model_id!r}: provider {name!r} is not configured: "
                f"{how_to_configure(name)}; {self._configured()}"
            )
        return Model(model_id, name, rest)

    def resolve_all(self, model_ids: Iterable[str]) -> tuple[Model, ...]:
        """Those of one request, in their order. Raises `InvalidRequest`."""
        models = tuple(self.resolve(model_id) for model_id in model_ids)
        size = sum(_size(model.id) for model in models)
        if size > limits.MODEL_IDS_BYTES:
            raise InvalidRequest(
                f"model: the ids have {size:,} bytes in UTF-8 together, at most "
                f"{limits.MODEL_IDS_BYTES:,} are allowed"
            )
        return models

    def check_strict(self, model: Model) -> None:
        """Raise `InvalidRequest` unless the model's provider may receive private data.

        The aggregator accepts a request to use only providers that keep nothing. Any other
        provider must be on this machine.
        """
        provider = self._catalog[model.provider]
        if not provider.aggregator and not provider.local:
            raise InvalidRequest(
                f"privacy: strict is not possible with model {model.id!r}: provider "
                f"{provider.name!r} is neither the aggregator nor on this machine"
            )

    def default(self, pin: Pin, named: bool) -> str:
        """The id for a request that names no model; `named`: it names a config.

        Raises `InvalidRequest` when nothing is configured that could answer, `ModelUnavailable`
        when the provider's list of models has none of its usual ones.
        """
        aggregator = AGGREGATOR in self._catalog
        if named and aggregator:
            return pin.model
        if self._default_model is not None:
            return self._default_model
        if aggregator:
            return pin.model
        if not self._keyed:
            raise NotConfigured(
                f"model: the request names none and the server has no default; {_HOW} or start "
                f"the server with --model; {self._configured()}"
            )
        return self._usual_model(self._keyed[0])

    def trouble(self, pin: Pin) -> str:
        """Why a request that names no model cannot be answered; empty where no reason is known.

        Asks no provider.
        """
        listed = self._default_model is None and AGGREGATOR not in self._catalog
        if listed and self._keyed:
            # Only the provider's list of models could show a reason.
            return ""
        try:
            self.resolve(self.default(pin, named=False))
        except ApiError as error:
            return error.message
        return ""

    def _check(self, model_id: str) -> None:
        if not model_id.strip():
            raise InvalidRequest("model: an id must not be empty")
        if _size(model_id) > limits.MODEL_ID_BYTES:
            raise InvalidRequest(f"model: an id has at most {limits.MODEL_ID_BYTES} bytes in UTF-8")
        if not model_id.isprintable() or model_id != model_id.strip():
            raise InvalidRequest(
                "model: an id holds printable characters only, and no blanks at its ends"
            )

    def _plain(self) -> Provider:
        """The provider that ids without a prefix go to."""
        if AGGREGATOR in self._catalog:
            return self._catalog[AGGREGATOR]
        if len(self._keyed) == 1:
            return self._keyed[0]
        raise NotConfigured(
            f"model: an id without @<provider>/ has no provider to go to; {_HOW}; "
            f"{self._configured()}"
        )

    def _configured(self) -> str:
        return f"configured providers: {', '.join(self._catalog) or 'none'}"

    def _usual_model(self, provider: Provider) -> str:
        """The first usual model that is listed; requests at the same time share one call."""
        with self._lock:
            answer = self._usual
            first = answer is None or self._clock() >= self._again_at
            if answer is None or first:
                answer, self._again_at = Future(), math.inf
                self._usual = answer
        if first:
            try:
                answer.set_result(self._ask(provider))
            except BaseException as error:  # noqa: BLE001 - the requests that wait get it too
                self._again_at = self._clock() + LIST_AGAIN_S
                answer.set_exception(error.with_traceback(None))
        try:
            return answer.result()
        except ModelUnavailable as error:
            # To each its own: that of all would keep the frames of everybody who raised it.
            raise ModelUnavailable(error.message) from None

    def _ask(self, provider: Provider) -> str:
        try:
            listed = self._list_models(provider)
        except ProviderError as error:
            if error.retry:
                self._again_at = self._clock() + LIST_AGAIN_S
            # Some providers have no such list, or need other headers for it than for a completion.
            return f"@{provider.name}/{provider.usual_models[0]}"
        names = {undated(name.removeprefix("models/")): name for name in sorted(listed)}
        names.update((name.removeprefix("models/"), name) for name in listed)
        for usual in provider.usual_models:
            if usual in names:
                return f"@{provider.name}/{names[usual]}"
        raise ModelUnavailable(
            f"provider {provider.name!r} lists none of its usual models; name a model"
        )


def _size(model_id: str) -> int:
    """The bytes of an id in UTF-8."""
    return len(model_id.encode("utf-8", "replace"))
