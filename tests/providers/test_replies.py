"""What every kind of reply is read as, through the client with the transport answered for."""

import json
import math
from contextlib import closing

import pytest
import requests
import responses

from svc.errors import ModelError, ModelUnavailable, RateLimited
from svc.providers.bodies import ChatCall
from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.failures import (
    BadReply,
    CallError,
    CallTimedOut,
    Gone,
    NoLogprobs,
    ParameterRefused,
    Refused,
    ServerTrouble,
    Throttled,
)
from svc.providers.redaction import Redactor
from svc.providers.refusals import Asked
from svc.providers.replies import Reply, read_completion
from svc.providers.routing import Model
from tests.scripted import completion, error, position

NOW = 1_800_000_000.0
URL = "https://provider.example/v1"
PLAIN = ChatCall(({"role": "user", "content": "hello"},), 50)
LOGPROBS = ChatCall(PLAIN.messages, 50, logprobs=True)
SCHEMA = ChatCall(PLAIN.messages, 50, schema={"type": "object"})
SURE = {"A": 0.9, "B": 0.1}


def ask(body=b"", status=200, headers=None, call=PLAIN, aggregator=False, times=1):
    """Call once against one canned reply; the last of several calls counts."""
    provider = Provider("t", URL, aggregator=aggregator)
    data = body if isinstance(body, bytes | Exception) else json.dumps(body).encode()
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.post(f"{URL}/chat/completions", body=data, status=status, headers=headers)
        with closing(Client({"t": provider}, 1, now=lambda: NOW)) as client:
            for _ in range(times - 1):
                with pytest.raises(CallError):
                    client.call(Model("@t/m", "t", "m"), call, 10)
            return client.call(Model("@t/m", "t", "m"), call, 10)


def logprobs(content):
    body = completion("A")
    body["choices"][0]["logprobs"] = {"content": content}
    return body


def test_a_whole_completion_is_read():
    body = completion("A\nB", tokens=[SURE, {"\n": 1.0}, {"B": 0.6, "A": 0.4}], cost=0.002)
    answer = ask(body, call=LOGPROBS)
    assert (answer.text, answer.cut) == ("A\nB", False)
    assert (answer.input_tokens, answer.output_tokens, answer.reported_cost) == (100, 10, 0.002)
    assert [token.text for token in answer.tokens] == ["A", "\n", "B"]
    assert answer.tokens[0].logprob == pytest.approx(math.log(0.9))
    assert dict(answer.tokens[2].alternatives) == pytest.approx(
        {"B": math.log(0.6), "A": math.log(0.4)}
    )


def test_logprobs_that_were_not_asked_for_are_left_alone():
    assert ask(completion("A", tokens=[SURE])).tokens is None


def test_a_completion_that_was_cut_says_so():
    assert ask(completion("A", finish_reason="length")).cut


def test_content_may_come_in_parts():
    body = completion("x")
    body["choices"][0]["message"]["content"] = [{"type": "text", "text": "A"}, {"text": 5}, "B", 7]
    assert ask(body).text == "AB"


def test_lone_surrogates_do_not_survive():
    answer = ask(b'{"choices": [{"message": {"content": "\\ud800 \xc3\xa9"}}]}')
    assert answer.text == "? é"


def test_a_byte_order_mark_is_skipped():
    assert ask(b"\xef\xbb\xbf" + json.dumps(completion("A")).encode()).text == "A"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>ok</html>",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 10_000,
        b"null",
        b"NaN",
        [],
        {},
        "text",
        {"choices": None},
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [[]]},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": []}]},
        {"choices": [{"message": {"content": 5}}]},
        {"choices": [{"message": {"content": {"a": 1}}}]},
        {"choices": [{"message": {"content": [None, {}, {"text": None}]}}]},
        completion(None),
        completion(""),
        completion(" \n"),
        completion("", finish_reason="length"),
    ],
    ids=str,
)
def test_a_reply_without_a_text_is_a_bad_reply(body):
    with pytest.raises(BadReply) as raised:
        ask(body)
    assert not raised.value.retry
    assert isinstance(raised.value.as_api_error(), ModelError)


def test_a_filtered_answer_is_a_refusal():
    with pytest.raises(Refused):
        ask(completion("A", finish_reason="content_filter"))


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        "A",
        [None],
        [{}],
        [{"token": 5, "logprob": -0.1, "top_logprobs": []}],
        [{"token": "A", "logprob": "-0.1", "top_logprobs": []}],
        [{"token": "A", "logprob": True, "top_logprobs": []}],
        [{"token": "A", "logprob": 0.5, "top_logprobs": []}],
        [{"token": "A", "logprob": -0.1}],
        [{"token": "A", "logprob": -0.1, "top_logprobs": None}],
        [{"token": "A", "logprob": -0.1, "top_logprobs": []}],
        [{"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "A", "logprob": -0.1}]}],
        [{"token": "A", "logprob": -0.1, "top_logprobs": [None, None]}],
        [{**position(SURE), "logprob": -9999.0}],
        [{**position(SURE), "logprob": None}],
        [{"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "A", "logprob": -9999.0}] * 3}],
        [{"token": "A", "logprob": 0.0, "top_logprobs": [{"token": "A", "logprob": 0.0}] * 2}],
        [position(SURE), position({"A": 0.7, "B": 0.7})],
    ],
    ids=str,
)
def test_logprobs_that_cannot_be_used_are_none(content):
    with pytest.raises(NoLogprobs):
        ask(logprobs(content), call=LOGPROBS)


@pytest.mark.parametrize("value", ["null", "[]", '{"content": null}', "5", '"x"'])
def test_missing_logprobs_are_none(value):
    body = '{"choices": [{"message": {"content": "A"}, "logprobs": %s}]}' % value  # noqa: UP031
    with pytest.raises(NoLogprobs):
        ask(body.encode(), call=LOGPROBS)


@pytest.mark.parametrize("value", ["NaN", "1e999", "Infinity"])
def test_a_logprob_that_is_no_number_is_none(value):
    item = '{"token": "A", "logprob": %s, "top_logprobs": []}' % value  # noqa: UP031
    body = '{"choices": [{"message": {"content": "A"}, "logprobs": {"content": [%s]}}]}' % item  # noqa: UP031
    with pytest.raises(NoLogprobs):
        ask(body.encode(), call=LOGPROBS)


def test_impossible_alternatives_are_left_out_and_the_others_count():
    item = position({**SURE})
    item["top_logprobs"] += [{"token": "C", "logprob": -9999.0}, {"token": "D", "logprob": None}]
    answer = ask(logprobs([item]), call=LOGPROBS)
    assert [token for token, _ in answer.tokens[0].alternatives] == ["A", "B"]


def test_a_logprob_a_hair_over_zero_is_certainty():
    item = position(SURE)
    item["logprob"] = 1e-7
    assert ask(logprobs([item]), call=LOGPROBS).tokens[0].logprob == 0.0


@pytest.mark.parametrize("lie", [None, "7", -1, 1.5, True, 10**30, [], {}])
def test_a_usage_that_lies_counts_nothing(lie):
    body = completion("A", prompt_tokens=lie, completion_tokens=lie)
    answer = ask(body)
    assert (answer.input_tokens, answer.output_tokens) == (0, 0)


@pytest.mark.parametrize("lie", [None, "7", -1, True, 1e300, [], {}])
def test_a_cost_that_lies_is_no_cost(lie):
    assert ask(completion("A", cost=lie)).reported_cost is None


@pytest.mark.parametrize("usage", [None, [], "x", 5])
def test_a_usage_of_another_shape_counts_nothing(usage):
    assert ask({**completion("A"), "usage": usage}).input_tokens == 0


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (401, error("Incorrect API key"), Refused),
        (402, error("Insufficient credits", code=402), Refused),
        (403, error("Your input was flagged"), Refused),
        (403, error("Project `p` does not have access to model `m`"), Gone),
        (403, error("no", code="model_permission_blocked_org"), Gone),
        (400, error("nope/nope is not a valid model ID", code=400), Gone),
        (400, error("The model `m` has been decommissioned", code="model_decommissioned"), Gone),
        (404, error("The model `m` does not exist", code="model_not_found"), Gone),
        (404, error("model 'm' not found", type="not_found_error"), Gone),
        (404, {"object": "error", "message": "The model `m` does not exist.", "code": 404}, Gone),
        (404, [{"error": {"code": 404, "message": "models/m is not found for API version"}}], Gone),
        (404, error("gone"), Gone),
        (410, error("gone"), Gone),
        (404, b"<html>not found</html>", Refused),
        (404, b"", Refused),
        (400, error("m", param="model"), Gone),
        (400, {"error": "invalid model"}, Gone),
        (400, error("bad"), Refused),
        (400, error("max_tokens: context length is 4096", code=None), Refused),
        (400, error("max_tokens", code="context_length_exceeded"), Refused),
        (400, b"x", Refused),
        (400, {"error": None}, Refused),
        (400, {"error": {"message": {"a": 1}, "code": [], "param": 5}}, Refused),
        (301, b"", Refused),
        (304, b"", Refused),
        (418, error("teapot"), Refused),
        (204, b"", BadReply),
        (408, b"", ServerTrouble),
        (500, b"", ServerTrouble),
        (500, error("'temperature' is unknown"), ServerTrouble),
        (503, error("Loading model"), ServerTrouble),
        (529, error("overloaded"), ServerTrouble),
        (599, b"\xff", ServerTrouble),
        (429, b"", Throttled),
        (429, error("slow"), Throttled),
        (200, error("slow", code=429), Throttled),
        (200, error("slow", code="429"), Throttled),
        (200, error("slow", code="rate_limit_exceeded"), Throttled),
        (200, error("down", code=502), ServerTrouble),
        (200, error("down", type="server_error"), ServerTrouble),
        (200, error("The model `m` does not exist", code="model_not_found"), Gone),
        (200, error("no idea"), Refused),
        (200, {"error": "no idea"}, Refused),
        (200, {"choices": [{"error": {"code": 502, "message": "x"}}]}, ServerTrouble),
    ],
)
def test_an_error_reply_is_what_it_means(status, body, failure):
    with pytest.raises(CallError) as raised:
        ask(body, status=status)
    assert type(raised.value) is failure


@pytest.mark.parametrize(
    ("call", "message", "parameter"),
    [
        (PLAIN, error("Unsupported value", code="unsupported_value", param="temperature"), None),
        (PLAIN, error("x", code=None, param="temperature"), "temperature"),
        (PLAIN, error("Unsupported parameter: 'temperature'"), "temperature"),
        (PLAIN, error("'max_tokens' is not supported, use 'max_completion_tokens'"), "max_tokens"),
        (SCHEMA, error("x", param="response_format.json_schema"), "response_format"),
        (SCHEMA, error("This response_format type is unavailable now"), "response_format"),
        (SCHEMA, error("structured outputs are not supported"), "response_format"),
        (PLAIN, {"detail": [{"loc": ["body", "temperature"], "msg": "extra"}]}, "temperature"),
        (PLAIN, {"message": "temperature is not allowed", "type": "x"}, "temperature"),
    ],
)
def test_a_refused_parameter_is_named(call, message, parameter):
    with pytest.raises(ParameterRefused) as raised:
        ask(message, status=400, call=call)
    assert raised.value.parameter == (parameter or "temperature")


@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize(
    "body",
    [
        error("logprobs is not supported with this model"),
        error("x", param="top_logprobs"),
        error("top_logprobs must be at most 5"),
        {"detail": [{"loc": ["body", "logprobs"], "msg": "Extra inputs are not permitted"}]},
    ],
)
def test_refused_logprobs_are_no_logprobs(status, body):
    with pytest.raises(NoLogprobs):
        ask(body, status=status, call=LOGPROBS)


def test_a_parameter_that_was_not_sent_cannot_be_refused():
    with pytest.raises(Refused):
        ask(error("logprobs is not supported"), status=400, call=PLAIN)


def test_the_aggregators_404s_do_not_mean_that_the_model_is_gone():
    nothing = error("No endpoints found that can handle the requested parameters.", code=404)
    with pytest.raises(ParameterRefused) as raised:
        ask(nothing, status=404, aggregator=True)
    assert raised.value.parameter == "require_parameters"
    with pytest.raises(Refused):
        ask(nothing, status=404, aggregator=True, times=2)
    policy = error("No endpoints found matching your data policy (logprobs).", code=404)
    with pytest.raises(Refused):
        ask(policy, status=404, aggregator=True, call=LOGPROBS)
    with pytest.raises(Gone):
        ask(error("No endpoints found for vendor/m.", code=404), status=404, aggregator=True)


def test_the_aggregators_policy_is_never_dropped():
    with pytest.raises(Refused):
        ask(error("bad", param="provider"), status=400, aggregator=True)
    with pytest.raises(Refused):
        ask(error("'provider' is unknown"), status=400, aggregator=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": "Fri, 15 Jan 2027 08:00:09 GMT"}, 9),
        ({"Retry-After": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0),
        ({"Retry-After": "Fri, 15 Jan 2027 08:00:09"}, 9),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e300"}, None),
        ({"Retry-After": "Fri, 99 Jan 99999 99:99:99 GMT"}, None),
        ({"X-RateLimit-Reset": str(int(NOW) + 30)}, 30),
        ({"X-RateLimit-Reset": str(int(NOW + 30) * 1000)}, 30),
        ({"X-RateLimit-Reset": str(int(NOW) - 30)}, 0),
        ({"X-RateLimit-Reset": "30"}, 30),
        ({"X-RateLimit-Reset": "1s"}, None),
        ({"Retry-After": "3", "X-RateLimit-Reset": "30"}, 3),
    ],
)
@pytest.mark.parametrize(("status", "failure"), [(429, Throttled), (503, ServerTrouble)])
def test_the_wait_is_read_from_the_header(status, failure, headers, seconds):
    with pytest.raises(failure) as raised:
        ask(b"", status=status, headers=headers)
    assert raised.value.retry
    assert raised.value.retry_after == seconds


def test_the_wait_is_read_from_the_aggregators_body():
    reset = str(int(NOW + 42) * 1000)
    body = error("slow", code=429, metadata={"headers": {"X-RateLimit-Reset": reset}})
    with pytest.raises(Throttled) as raised:
        ask(body, status=429, aggregator=True)
    assert raised.value.retry_after == 42


@pytest.mark.parametrize("metadata", [None, [], {"headers": []}, {"headers": {}}, {"headers": 5}])
def test_odd_metadata_says_nothing(metadata):
    with pytest.raises(Throttled) as raised:
        ask(error("slow", metadata=metadata), status=429)
    assert raised.value.retry_after is None


@pytest.mark.parametrize(
    ("raised_below", "failure"),
    [
        (requests.ConnectTimeout(), CallTimedOut),
        (requests.ReadTimeout(), CallTimedOut),
        (requests.ConnectionError("x"), ServerTrouble),
        (requests.exceptions.ChunkedEncodingError("x"), ServerTrouble),
        (requests.exceptions.ProxyError("x"), ServerTrouble),
        (requests.exceptions.InvalidURL("x"), Refused),
        (requests.exceptions.InvalidSchema("x"), Refused),
        (UnicodeError("x"), Refused),
        (OSError("x"), ServerTrouble),
    ],
)
def test_what_the_transport_raises_is_mapped(raised_below, failure):
    with pytest.raises(CallError) as raised:
        ask(raised_below)
    assert type(raised.value) is failure


def test_what_a_caller_sees_holds_no_word_of_the_provider():
    for status, body, kind in [
        (429, error("provider words"), RateLimited),
        (500, error("provider words"), ModelError),
        (400, error("provider words"), ModelError),
        (404, error("provider words"), ModelUnavailable),
    ]:
        with pytest.raises(CallError) as raised:
            ask(body, status=status)
        seen = raised.value.as_api_error()
        assert type(seen) is kind
        assert "provider words" not in seen.message


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ServerTrouble, "failed or could not be reached"),
        (Refused, "refused the call"),
        (CallTimedOut, "took too long"),
        (BadReply, "gave no valid answer"),
    ],
)
def test_a_caller_hears_what_kind_of_trouble_it_was(kind, words):
    assert words in kind("provider words").as_api_error().message


def test_a_throttled_call_carries_the_providers_wait_to_the_caller():
    with pytest.raises(Throttled) as raised:
        ask(b"", status=429, headers={"Retry-After": "6.2"})
    assert raised.value.as_api_error().retry_after == 7


def test_no_value_anywhere_makes_reading_raise_anything_but_a_call_error():
    """Every node of a completion and of an error is replaced by every odd value in turn."""
    odd = [None, True, 5, -1, 0.5, "x", "", [], {}, [None], {"a": 1}, [[]], 10**40, "\ud800"]
    asked = Asked({"logprobs": True, "temperature": 0}, Redactor(LOGPROBS, "k"), True)
    read = 0
    templates = [completion("A", tokens=[SURE]), error("m", code="c", param="p", type="t")]
    for template in templates:
        for path in _paths(template):
            for value in odd:
                body = json.dumps(_replaced(template, path, value)).encode()
                for status in (200, 400, 404, 429, 500):
                    try:
                        read_completion(Reply(status, {}, body), asked, NOW)
                    except CallError as failure:
                        assert str(failure)
                    read += 1
    assert read > 1_000


def _paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items if isinstance(value, dict | list) else ():
        if isinstance(inner, dict | list):
            yield from _paths(inner, (*path, key))
        else:
            yield (*path, key)


def _replaced(template, path, value):
    if not path:
        return value
    copy = json.loads(json.dumps(template))
    node = copy
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return copy
