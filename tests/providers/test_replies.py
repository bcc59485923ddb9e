"""What every kind of reply is read as, through the client with the transport answered for."""

import json
import math
from contextlib import closing
from dataclasses import replace

import pytest
import requests
import responses

from svc import limits
from svc.errors import ModelError, ModelUnavailable, NoAnswer, RateLimited
from svc.providers.bodies import JSON_OBJECT, ChatCall
from svc.providers.catalog import Provider
from svc.providers.client import Client
from svc.providers.failures import (
    BadReply,
    CallTimedOut,
    Cut,
    FormatRefused,
    Gone,
    KeyRefused,
    NoCredit,
    NoLogprobs,
    NotThisWay,
    ParameterBounded,
    ParameterRefused,
    ProviderError,
    Refused,
    ServerTrouble,
    Throttled,
)
from svc.providers.redaction import Allowance, Redactor
from svc.providers.refusals import SentCall
from svc.providers.replies import Reply, check_payload, decoded, read_chat
from svc.providers.traits import NO_CORRECTIONS, Corrections, Traits
from svc.records import Model
from svc.usage import NO_USAGE
from tests.scripted import completion, error, position

NOW = 1_800_000_000.0
URL = "http://provider.example/v1"
PLAIN = ChatCall(({"role": "user", "content": "hello"},), 50)
LOGPROBS = ChatCall(PLAIN.messages, 50, logprobs=True)
SCHEMA = ChatCall(PLAIN.messages, 50, schema={"type": "object"})
OBJECT = ChatCall(PLAIN.messages, 50, schema={"type": "object"}, reply_format=JSON_OBJECT)
LONG = ChatCall(PLAIN.messages, 8_192)
SURE = {"A": 0.9, "B": 0.1}


def ask(body=b"", status=200, headers=None, call=PLAIN, corrections=NO_CORRECTIONS, **facts):
    """Call once against one canned reply."""
    provider = Provider("t", URL, **facts)
    data = body if isinstance(body, bytes | Exception) else json.dumps(body).encode()
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.post(f"{URL}/chat/completions", body=data, status=status, headers=headers)
        with closing(Client({"t": provider}, 1, now=lambda: NOW)) as client:
            return client.call(Model("@t/m", "t", "m"), call, 10, corrections=corrections)


def correcting(**facts):
    """A correction by what an earlier attempt was refused for."""
    return Corrections(Traits(**facts))


def saying(text, **facts):
    """A call whose caller's own text this is."""
    return ChatCall(({"role": "user", "content": text},), 50, **facts)


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


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({}, ""),
        ({"model": "gpt-4o-2024-08-06"}, "gpt-4o-2024-08-06"),
        ({"system_fingerprint": "fp_abc"}, "fp_abc"),
        ({"model": "m-1", "system_fingerprint": "fp_abc"}, "m-1 fp_abc"),
        ({"model": "m-1", "system_fingerprint": None}, "m-1"),
        ({"model": "日本-7b"}, "日本-7b"),
        ({"model": "m" * 200, "system_fingerprint": "f" * 201}, "m" * 200),
    ],
)
def test_what_the_provider_calls_its_model_is_read(said, kept):
    assert ask(completion("A") | said).served_by == kept


@pytest.mark.parametrize(
    "lie", [None, "", 5, True, [], {}, "x" * 201, "a b", "a\nb", "a\x00b", "\ud800", "\u202eabc"]
)
def test_a_name_that_is_not_a_few_visible_characters_is_left_out(lie):
    assert ask(completion("A") | {"model": lie, "system_fingerprint": "fp_1"}).served_by == "fp_1"
    assert ask(completion("A") | {"model": lie, "system_fingerprint": lie}).served_by == ""


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


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_reply_that_was_cut_before_any_text_is_told_apart(text):
    for call in (PLAIN, LOGPROBS):
        with pytest.raises(Cut) as raised:
            ask(completion(text, finish_reason="length"), call=call)
        assert not raised.value.retry
        assert "used up the output limit" in raised.value.as_api_error().message
    with pytest.raises(BadReply) as raised:
        ask(completion(text))
    assert type(raised.value) is BadReply


def test_a_filtered_answer_is_a_refusal_that_may_be_charged():
    with pytest.raises(Refused) as raised:
        ask(completion("A", finish_reason="content_filter"))
    assert raised.value.may_be_charged


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 5, "completion_tokens": 1}])
def test_an_error_may_be_charged_where_usage_stands_beside_it(usage):
    whole = {**completion("A"), "usage": usage}
    fault = {"error": {"message": "x", "code": 502}}
    inner = {**whole, "choices": [{**whole["choices"][0], **fault}]}
    bodies = [({**whole, **fault}, status) for status in (200, 400, 429, 500, 503)]
    for body, status in (*bodies, ([{**whole, **fault}], 500), (inner, 200)):
        with pytest.raises(ProviderError) as raised:
            ask(body, status)
        assert raised.value.may_be_charged is bool(usage)


FAILING = {
    "withheld": {"choices": [{"message": {"content": "A"}, "finish_reason": "content_filter"}]},
    "cut": {"choices": [{"message": {"content": ""}, "finish_reason": "length"}]},
    "no text": {"choices": [{"message": {"content": None}}]},
    "no choice": {"choices": []},
    "no logprobs": {"choices": [{"message": {"content": "A"}}]},
    "no usable logprobs": logprobs([position({"A": 1.0})]),
    "an error": error("it broke"),
    "an error of the choice": {"choices": [error("it broke", code=502)]},
}


@pytest.mark.parametrize("status", [200, 400, 429, 500])
@pytest.mark.parametrize("body", FAILING.values(), ids=FAILING)
def test_an_error_keeps_the_usage_that_its_reply_states(body, status):
    stated = {**body, "usage": {"prompt_tokens": 9_000, "completion_tokens": 20, "cost": 0.5}}
    for reply in (stated, [stated]):
        with pytest.raises(ProviderError) as raised:
            ask(reply, status, call=LOGPROBS)
        assert raised.value.usage == (9_000, 20, 0.5)
        assert raised.value.may_be_charged
    with pytest.raises(ProviderError) as raised:
        ask({**body, "usage": None}, status, call=LOGPROBS)
    assert raised.value.usage == NO_USAGE


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "lie", [-1, 1.5, 10_001, 10**10, 10**400, 1e300, math.nan, math.inf, True, "9", [9], {"a": 9}]
)
def test_a_failed_reply_is_believed_no_more_than_a_good_one(lie, status):
    usage = {"prompt_tokens": lie, "completion_tokens": 20, "cost": lie}
    good = ask({**completion("A"), "usage": usage})
    with pytest.raises(ProviderError) as raised:
        ask({**error("it broke"), "usage": usage}, status)
    believed = (good.input_tokens, good.output_tokens, good.reported_cost)
    assert raised.value.usage == believed
    assert believed in (NO_USAGE, (0, 20, None), (0, 0, 1.5), (10_001, 20, None))


@pytest.mark.parametrize("usage", [[], [5], "x", 5, True])
def test_a_failed_reply_with_usage_of_another_shape_states_none(usage):
    with pytest.raises(ProviderError) as raised:
        ask({**error("it broke"), "usage": usage}, 500)
    assert raised.value.usage == NO_USAGE


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
        [{"token": "A", "logprob": -0.1, "top_logprobs": [None, None]}],
        [{**position(SURE), "logprob": -9999.0}],
        [{**position(SURE), "logprob": None}],
        [{"token": "A", "logprob": -0.1, "top_logprobs": [{"token": "A", "logprob": -9999.0}] * 3}],
        [position({"A": 1.0})],
        [position({"A": 1.0}), position({"\n": 1.0}), position({"B": 1.0})],
    ],
    ids=str,
)
def test_logprobs_that_cannot_be_used_are_none(content):
    with pytest.raises(NoLogprobs):
        ask(logprobs(content), call=LOGPROBS)


def test_a_single_alternative_is_used_where_it_is_not_certain():
    answer = ask(logprobs([position({"A": 0.9})]), call=LOGPROBS)
    assert answer.tokens[0].alternatives == (("A", pytest.approx(math.log(0.9))),)


def test_fewer_alternatives_than_asked_for_are_used():
    content = [position({"C": 1.0}), position({"A": 0.6, "B": 0.3})]
    answer = ask(logprobs(content), call=LOGPROBS)
    assert [len(token.alternatives) for token in answer.tokens] == [1, 2]


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


@pytest.mark.parametrize("lie", ["7", -1, True, 1e300, 1.5, [], {}])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_with_one_count_that_lies_both_are_unknown(name, lie):
    usage = {"prompt_tokens": 30, "completion_tokens": 4, name: lie}
    answer = ask({**completion("A"), "usage": usage})
    assert (answer.input_tokens, answer.output_tokens) == (0, 0)


def test_a_count_that_is_missing_leaves_the_other():
    answer = ask({**completion("A"), "usage": {"completion_tokens": 4}})
    assert (answer.input_tokens, answer.output_tokens) == (0, 4)


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"completion_tokens": 1, "total_tokens": 399}, 387),
        ({"completion_tokens": 387, "total_tokens": 399}, 387),
        ({"completion_tokens": 5, "total_tokens": 3}, 5),
        ({"completion_tokens": 5, "total_tokens": "x"}, 5),
        ({"completion_tokens": 5, "total_tokens": -4}, 5),
        ({"completion_tokens": 1, "total_tokens": 10**6}, 0),
    ],
)
def test_thoughts_that_only_the_total_counts_are_output(usage, output):
    given = {"prompt_tokens": 12, **usage}
    assert ask({**completion("A"), "usage": given}).output_tokens == output
    with pytest.raises(ProviderError) as raised:
        ask({**error("it broke"), "usage": given}, 500)
    assert raised.value.usage.output_tokens == output


@pytest.mark.parametrize(
    ("stated", "cost"),
    [
        ({"is_byok": True, "cost": 0, "cost_details": {"upstream_inference_cost": 0.2}}, 0.2),
        ({"is_byok": True, "cost": 0.1, "cost_details": {"upstream_inference_cost": 0.2}}, 0.3),
        ({"is_byok": False, "cost": 0.3, "cost_details": {"upstream_inference_cost": 0.2}}, 0.3),
        ({"is_byok": 1, "cost": 0.3, "cost_details": {"upstream_inference_cost": 0.2}}, 0.3),
        ({"is_byok": True, "cost": 0.3, "cost_details": {"upstream_inference_cost": -5}}, 0.3),
        ({"is_byok": True, "cost": 0.3, "cost_details": [5]}, 0.3),
        ({"is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, None),
    ],
)
def test_what_an_own_key_upstream_costs_is_a_part_of_the_cost(stated, cost):
    reported = ask({**completion("A"), "usage": stated}).reported_cost
    assert reported == (None if cost is None else pytest.approx(cost))


@pytest.mark.parametrize(
    ("tokens", "text", "believed"),
    [
        ((100_000, 200_000), "", True),
        ((100_000, 200_001), "", False),
        ((200_000, 1), "x" * 100_000, True),
        ((300_000, 1), "x" * 100_000, False),
    ],
)
def test_no_call_used_more_than_it_can_have(tokens, text, believed):
    asked = ChatCall(({"role": "user", "content": text},), 50)
    usage = dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=True))
    answer = ask({**completion("A"), "usage": usage}, call=asked)
    expected = tokens if believed else (0, 0)
    assert (answer.input_tokens, answer.output_tokens) == expected
    with pytest.raises(ProviderError) as raised:
        ask({**error("it broke"), "usage": usage}, 500, call=asked)
    assert raised.value.usage[:2] == expected


@pytest.mark.parametrize("usage", [None, [], "x", 5])
def test_a_usage_of_another_shape_counts_nothing(usage):
    assert ask({**completion("A"), "usage": usage}).input_tokens == 0


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (401, error("Incorrect API key"), KeyRefused),
        (401, b"", KeyRefused),
        (402, error("Insufficient credits", code=402), NoCredit),
        (402, b"", NoCredit),
        (429, error("You exceeded your current quota", code="insufficient_quota"), NoCredit),
        (429, error("no", type="insufficient_quota"), NoCredit),
        (400, error("Your credit balance is too low to access the API"), NoCredit),
        (200, error("no", code=402), NoCredit),
        (200, error("no", code=401), KeyRefused),
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
        (500, error("could not set temperature"), ServerTrouble),
        (500, error("'top_p' is unknown"), ServerTrouble),
        (501, b"", Refused),
        (501, error("not implemented"), Refused),
        (503, error("Loading model"), ServerTrouble),
        (529, error("overloaded"), ServerTrouble),
        (599, b"\xff", ServerTrouble),
        (429, b"", Throttled),
        (429, error("slow"), Throttled),
        (429, error("tokens per min: Limit 30000, Used 29937, Requested 385."), Throttled),
        (429, error("Request too large (TPM): Limit 30000, Requested 61337. Reduce it."), Refused),
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
    with pytest.raises(ProviderError) as raised:
        ask(body, status=status)
    assert type(raised.value) is failure


@pytest.mark.parametrize(
    ("call", "message", "parameter"),
    [
        (PLAIN, error("Unsupported value", code="unsupported_value", param="temperature"), None),
        (PLAIN, error("x", code=None, param="temperature"), "temperature"),
        (PLAIN, error("Unsupported parameter: 'temperature'"), "temperature"),
        (PLAIN, error("'max_tokens' is not supported, use 'max_completion_tokens'"), "max_tokens"),
        (PLAIN, {"detail": [{"loc": ["body", "temperature"], "msg": "extra"}]}, "temperature"),
        (PLAIN, {"message": "temperature is not allowed", "type": "x"}, "temperature"),
        (LOGPROBS, error("Unsupported parameter: 'temperature'"), "temperature"),
        (SCHEMA, error("x", param="temperature"), "temperature"),
    ],
)
def test_a_refused_parameter_is_named(call, message, parameter):
    with pytest.raises(ParameterRefused) as raised:
        ask(message, status=400, call=call)
    assert raised.value.parameter == (parameter or "temperature")
    assert raised.value.lasting


QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize("code", ["insufficient_quota", "insufficient_credits"])
@pytest.mark.parametrize("place", ["code", "type"])
@pytest.mark.parametrize("headers", [{}, {"Retry-After": "5"}])
@pytest.mark.parametrize("message", ["no", QUOTA, "Rate limit reached, retry in 5s"])
def test_a_code_of_a_spent_account_counts_whatever_else_is_said(message, headers, place, code):
    with pytest.raises(NoCredit):
        ask(error(message, **{place: code}), status=429, headers=headers)


@pytest.mark.parametrize("status", [400, 403, 429])
@pytest.mark.parametrize("message", [QUOTA, "Your credit balance is too low", "out of credits"])
def test_words_of_a_spent_account_count_where_nothing_says_that_it_passes(message, status):
    with pytest.raises(NoCredit):
        ask(error(message), status=status)


@pytest.mark.parametrize(
    "message",
    [
        f"{QUOTA} Please retry in 35.7s.",
        f"{QUOTA} Please try again in 5s.",
        f"{QUOTA} Limit: 15 requests per minute",
        f"{QUOTA} Limit: 500 requests per-day",
        f"{QUOTA} See https://ai.example/rate-limits",
        f"Rate limit reached. {QUOTA}",
        f"429 RESOURCE_EXHAUSTED. {QUOTA}",
    ],
)
def test_words_of_a_spent_account_beside_words_of_a_passing_limit_are_such_a_limit(message):
    with pytest.raises(Throttled):
        ask(error(message), status=429)


@pytest.mark.parametrize("facts", [{"code": "RESOURCE_EXHAUSTED"}, {"code": "rate_limit_exceeded"}])
def test_a_code_of_a_passing_limit_outweighs_words_of_a_spent_account(facts):
    with pytest.raises(Throttled):
        ask(error(QUOTA, **facts), status=429)


def test_a_wait_in_the_header_outweighs_words_of_a_spent_account():
    with pytest.raises(Throttled) as raised:
        ask(error(QUOTA), status=429, headers={"retry-after": "35"})
    assert raised.value.retry_after == 35


@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize(
    "body",
    [
        error("logprobs is not supported with this model"),
        error("x", param="top_logprobs"),
        error("You are not allowed to request log probs"),
        {"detail": [{"loc": ["body", "logprobs"], "msg": "Extra inputs are not permitted"}]},
    ],
)
def test_refused_logprobs_are_no_logprobs(status, body):
    with pytest.raises(NoLogprobs):
        ask(body, status=status, call=LOGPROBS)


@pytest.mark.parametrize("status", [400, 403, 405, 415, 418, 422, 501])
@pytest.mark.parametrize(
    "body",
    [
        error("logprobs is not supported with this model"),
        error("bad"),
        error("Please try again with other options"),
        b"<html>bad request</html>",
        b"",
    ],
)
def test_any_refusal_of_a_call_that_asks_for_logprobs_is_one_of_them(status, body):
    with pytest.raises(NoLogprobs) as raised:
        ask(body, status=status, call=LOGPROBS)
    assert not raised.value.retry


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (401, error("logprobs"), KeyRefused),
        (402, error("logprobs"), NoCredit),
        (404, error("The model `m` does not exist", code="model_not_found"), Gone),
        (404, error("no such thing"), Gone),
        (403, error("Project `p` does not have access to model `m`"), Gone),
        (408, b"", ServerTrouble),
        (429, error("slow"), Throttled),
        (500, b"", ServerTrouble),
        (502, error("logprobs is not supported"), ServerTrouble),
        (200, error("no idea"), NoLogprobs),
    ],
)
def test_what_would_be_refused_without_logprobs_too_is_not_laid_to_them(status, body, failure):
    with pytest.raises(ProviderError) as raised:
        ask(body, status=status, call=LOGPROBS)
    assert type(raised.value) is failure


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("call", [SCHEMA, OBJECT], ids=["schema", "object"])
@pytest.mark.parametrize(
    "body",
    [
        error("x", param="response_format.json_schema"),
        error("x", param="response_format"),
        error("This response_format type is unavailable now"),
        error("structured outputs are not supported"),
        error("Failed to generate JSON", code="json_validate_failed"),
        error("'messages' must contain the word 'json' in some form"),
        error("bad"),
        b"",
    ],
)
def test_any_refusal_of_a_bound_reply_is_one_of_its_format(status, call, body):
    with pytest.raises(FormatRefused):
        ask(body, status=status, call=call)


@pytest.mark.parametrize(
    ("status", "message", "failure"),
    [
        (403, "bad", Refused),
        (404, "bad", Gone),
        (413, "bad", Refused),
        (400, "This model's maximum context length is 4096 tokens", Refused),
        (400, "the prompt is too long", Refused),
    ],
)
def test_a_refusal_that_words_alone_would_meet_too_is_not_laid_to_the_format(
    status, message, failure
):
    with pytest.raises(ProviderError) as raised:
        ask(error(message), status=status, call=SCHEMA)
    assert type(raised.value) is failure


@pytest.mark.parametrize(
    "body",
    [
        error("x", param="response_format.schema"),
        error("response_format.schema: Extra inputs are not permitted"),
        {"detail": [{"loc": ["body", "response_format", "schema"], "msg": "Extra inputs"}]},
    ],
)
def test_a_schema_that_is_refused_beside_an_object_is_left_out_alone(body):
    with pytest.raises(ParameterRefused) as raised:
        ask(body, status=400, call=OBJECT)
    assert raised.value.parameter == "response_format.schema"
    left_out = correcting(refused=frozenset({"response_format.schema"}))
    with pytest.raises(FormatRefused):
        ask(body, status=400, call=OBJECT, corrections=left_out)
    with pytest.raises(FormatRefused):
        ask(body, status=400, call=SCHEMA)


@pytest.mark.parametrize(
    ("call", "body", "failure"),
    [
        (LOGPROBS, error("logprobs is not supported yet"), NoLogprobs),
        (LOGPROBS, error("1 validation error: logprobs should be an integer"), NoLogprobs),
        (LOGPROBS, error("logprobs requires logits_all to be set"), NoLogprobs),
        (SCHEMA, error("response_format.type: unexpected value"), FormatRefused),
        (PLAIN, error("Unknown parameter: 'temperature'"), ParameterRefused),
        (PLAIN, error("temperature: " + "x" * 58 + "invalid"), ServerTrouble),
        (PLAIN, error("temperature: " + "x" * 50 + "invalid"), ParameterRefused),
        (PLAIN, error("invalid" + "x" * 60 + " temperature"), ServerTrouble),
        (PLAIN, error("invalid" + "x" * 50 + " temperature"), ParameterRefused),
        (PLAIN, error("validation error: max_tokens"), ParameterRefused),
        (PLAIN, error("temperature " * 20 + "is invalid"), ParameterRefused),
        (PLAIN, error("temperature " * 40 + "is invalid"), ServerTrouble),
        (LOGPROBS, error("oops"), ServerTrouble),
        (LOGPROBS, error("validation failed"), ServerTrouble),
        (LOGPROBS, error("could not compute logprobs"), ServerTrouble),
        (PLAIN, error("logprobs is not supported yet"), ServerTrouble),
        (PLAIN, error("'temperature' is unknown"), ServerTrouble),
    ],
    ids=str,
)
def test_a_servers_own_error_counts_as_a_refusal_where_it_blames_what_was_sent(call, body, failure):
    with pytest.raises(ProviderError) as raised:
        ask(body, status=500, call=call)
    assert type(raised.value) is failure
    for status in (502, 503, 504, 529):
        with pytest.raises(ServerTrouble):
            ask(body, status=status, call=call)


OUTAGE = (
    "Internal error while serving model m with {'temperature': 0, 'max_tokens': 50, "
    "'logprobs': True, 'response_format': None}: the worker that held the request went away "
    "before it had written anything, which it says is %s of the scheduler"
)


@pytest.mark.parametrize(
    "words", ["invalid state", "unexpected value", "a limit that was exceeded"]
)
@pytest.mark.parametrize("call", [PLAIN, LOGPROBS, SCHEMA], ids=["plain", "logprobs", "schema"])
def test_an_outage_that_lists_the_fields_of_the_request_teaches_nothing(call, words):
    with pytest.raises(ProviderError) as raised:
        ask(error(OUTAGE % words), status=500, call=call)
    assert type(raised.value) is ServerTrouble


@pytest.mark.parametrize(
    ("call", "failure"),
    [(LOGPROBS, NoLogprobs), (SCHEMA, FormatRefused), (OBJECT, FormatRefused), (PLAIN, Refused)],
    ids=["logprobs", "schema", "object", "plain"],
)
@pytest.mark.parametrize("body", [b"", error("not implemented"), b"<html>no</html>"], ids=str)
def test_a_server_without_the_function_is_asked_in_another_way_where_there_is_one(
    body, call, failure
):
    with pytest.raises(ProviderError) as raised:
        ask(body, status=501, call=call)
    assert type(raised.value) is failure
    assert isinstance(raised.value, NotThisWay) == (call is not PLAIN)
    assert not raised.value.retry


@pytest.mark.parametrize("call", [LOGPROBS, SCHEMA, OBJECT, PLAIN])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, error("too large")),
        (413, error("logprobs is not supported with this model")),
        (413, b""),
        (400, error("no", code="context_length_exceeded")),
        (400, error("This model's maximum context length is 4096 tokens")),
        (422, error("the prompt is too long")),
        (400, error("Input token count 9000 is over 4096")),
        (400, error("The request exceeds the model's maximum number of tokens")),
        (500, error("context size: invalid logprobs")),
    ],
    ids=str,
)
def test_a_prompt_that_is_too_long_is_refused_at_once_in_every_way(status, body, call):
    with pytest.raises(ProviderError) as raised:
        ask(body, status=status, call=call)
    assert not isinstance(raised.value, NotThisWay | ParameterRefused)
    if status < 500:
        assert type(raised.value) is Refused


CUT = (
    "Could not finish the message because max_tokens or model output limit was reached. "
    "Please try again with higher max_tokens."
)


@pytest.mark.parametrize("call", [PLAIN, LOGPROBS, SCHEMA, LONG])
@pytest.mark.parametrize("status", [400, 422])
def test_an_error_that_tells_of_a_used_up_limit_is_a_cut_and_not_a_bound(status, call):
    with pytest.raises(Cut) as raised:
        ask(error(CUT, param=None), status=status, call=call)
    assert not raised.value.retry
    assert "used up the output limit" in raised.value.as_api_error().message


# --- a field that the caller names too ---


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "message", ["temperature is not supported", "Unsupported, for it is temperature: invalid"]
)
def test_a_refused_field_that_the_caller_names_too_is_refused_for_this_call_alone(status, message):
    with pytest.raises(ParameterRefused) as raised:
        ask(error(message), status=status, call=saying("The TEMPERATURE rises"))
    assert (raised.value.parameter, raised.value.lasting) == ("temperature", False)
    assert (raised.value.retry, raised.value.retry_after) == (True, 0.0)
    with pytest.raises(ParameterRefused) as raised:
        ask(error(message), status=status, call=saying("It rises"))
    assert (raised.value.parameter, raised.value.lasting) == ("temperature", True)


@pytest.mark.parametrize("facts", [{}, {"logprobs": True}, {"schema": {"type": "object"}}])
def test_a_field_that_the_caller_names_too_is_refused_in_every_way_of_asking(facts):
    with pytest.raises(ParameterRefused) as raised:
        ask(error("temperature: invalid"), status=400, call=saying("temperature", **facts))
    assert not raised.value.lasting


@pytest.mark.parametrize(
    "message",
    [
        "cannot read: the temperature of the room",
        "invalid input: the temperature",
        "temperature" + "x" * 61 + " invalid",
        "the temperature " + "x" * 60 + " is not supported",
    ],
)
def test_an_echo_without_a_word_of_refusal_soon_after_it_blames_no_field(message):
    with pytest.raises(ProviderError) as raised:
        ask(error(message), status=400, call=saying("the temperature of the room"))
    assert type(raised.value) is Refused


@pytest.mark.parametrize(("status", "failure"), [(403, Refused), (404, Gone), (500, ServerTrouble)])
def test_an_echoed_field_is_blamed_by_a_validation_alone(status, failure):
    with pytest.raises(ProviderError) as raised:
        ask(error("temperature: invalid"), status=status, call=saying("temperature"))
    assert type(raised.value) is failure


def test_a_field_that_the_error_names_apart_is_refused_for_every_call_whatever_was_said():
    with pytest.raises(ParameterRefused) as raised:
        ask(error("invalid", param="temperature"), status=400, call=saying("temperature"))
    assert (raised.value.parameter, raised.value.lasting) == ("temperature", True)


# --- names that hold the name of a field ---


@pytest.mark.parametrize("name", ["deepseek-thinking", "vendor/thinking"])
@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_model_named_like_a_field_does_not_stand_for_the_field(status, name):
    extra = {"thinking": {"type": "disabled"}}
    with pytest.raises(ProviderError) as raised:
        ask(error(f"{name}: this input is not supported"), status=status, extra=extra)
    assert not isinstance(raised.value, ParameterRefused)
    with pytest.raises(ParameterRefused) as raised:
        ask(error(f"{name}: thinking is not supported"), status=status, extra=extra)
    assert (raised.value.parameter, raised.value.lasting) == ("thinking", True)


@pytest.mark.parametrize(
    "message",
    [
        "deep-temperature is not supported",
        "vendor/temperature is not supported",
        "Model deep-temperature: invalid request",
        "my_temperature is not supported",
        "temperatures are not supported",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_longer_name_that_holds_a_fields_name_is_no_field(status, message):
    with pytest.raises(ProviderError) as raised:
        ask(error(message), status=status)
    assert type(raised.value) is (ServerTrouble if status == 500 else Refused)


# --- bounds of numbers ---


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    ("message", "bound"),
    [
        ("top_logprobs must be at most 5", 5),
        ("Invalid value for 'top_logprobs': must be less than or equal to 5.", 5),
        ("Requested logprobs of 20, which is greater than max allowed: 8", 8),
        ("top_logprobs should be in the range [0, 10]", 10),
        ("top_logprobs: 20 is too large", 5),
        ("The number of log probs exceeds the limit", 5),
    ],
)
def test_fewer_alternatives_are_asked_for_where_there_were_too_many(status, message, bound):
    with pytest.raises(ParameterBounded) as raised:
        ask(error(message), status=status, call=LOGPROBS)
    found = raised.value
    assert (found.parameter, found.bound, found.upper, found.lasting) == (
        "top_logprobs",
        bound,
        True,
        True,
    )
    assert found.retry


@pytest.mark.parametrize(
    "message", ["top_logprobs must be at most 5", "invalid top_logprobs: > max 5"]
)
def test_a_servers_own_error_may_bound_a_number_too(message):
    with pytest.raises(ParameterBounded) as raised:
        ask(error(message), status=500, call=LOGPROBS)
    assert raised.value.bound == 5


def test_where_no_number_of_alternatives_is_taken_there_are_none():
    body = error("top_logprobs is too large")
    with pytest.raises(ParameterBounded) as raised:
        ask(body, status=400, call=LOGPROBS, corrections=correcting(top_logprobs=5))
    assert raised.value.bound == 1
    with pytest.raises(NoLogprobs):
        ask(body, status=400, call=LOGPROBS, corrections=correcting(top_logprobs=1))


@pytest.mark.parametrize(
    ("message", "bound", "lasting"),
    [
        ("max_tokens must be at most 4096", 4_096, True),
        (
            "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens",
            4_096,
            True,
        ),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8000]", 8_000, True),
        ("`max_output_tokens` exceeds the maximum of 2048", 2_048, True),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 8292 "
            "tokens (100 in the messages, 8192 in the completion).",
            8_092,
            False,
        ),
        (
            "'max_tokens' is too large: 8192. This model's maximum context length is 4096 tokens "
            "and your request has 96 input tokens",
            4_000,
            False,
        ),
        # text-generation-inference and Together.
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: "
            "218 `inputs` tokens and 8192 `max_new_tokens`",
            7_975,
            False,
        ),
        # Anthropic.
        (
            "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000, decrease "
            "input length or `max_tokens` and try again",
            5_000,
            False,
        ),
        # Nobody's words, of which at least no other call learns.
        ("max_tokens: prompt and output together may be up to 8000", 8_000, False),
        ("the total of inputs (218) and max_tokens is too large", 218, False),
    ],
)
def test_an_output_limit_is_lowered_to_what_the_provider_allows(message, bound, lasting):
    with pytest.raises(ParameterBounded) as raised:
        ask(error(message), status=400, call=LONG)
    found = raised.value
    assert (found.parameter, found.bound, found.upper, found.lasting) == (
        "max_tokens",
        bound,
        True,
        lasting,
    )


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, your messages resulted in "
        "4090 tokens.",
        "This model's maximum context length is 4096 tokens. However, your messages resulted in "
        "9000 tokens.",
        "Please reduce the length of the messages: the context window is 4096",
        "max_tokens must be at most 10",
    ],
)
def test_a_limit_that_leaves_no_room_for_an_answer_is_a_refusal(message):
    with pytest.raises(ProviderError) as raised:
        ask(error(message), status=400, call=LONG)
    assert not isinstance(raised.value, ParameterBounded)


def test_an_output_limit_is_raised_to_what_the_provider_wants():
    with pytest.raises(ParameterBounded) as raised:
        ask(error("max_tokens must be at least 128"), status=400)
    assert (raised.value.bound, raised.value.upper) == (128, False)


@pytest.mark.parametrize("number", ["999999999999", "0", "-5", "4096.5"])
def test_numbers_that_can_be_no_bound_teach_nothing(number):
    with pytest.raises(ProviderError) as raised:
        ask(error(f"max_tokens must be at most {number}"), status=400, call=LONG)
    assert not isinstance(raised.value, ParameterBounded)


def test_a_parameter_that_was_not_sent_cannot_be_refused():
    with pytest.raises(Refused):
        ask(error("logprobs is not supported"), status=400, call=PLAIN)


def test_the_aggregators_404s_do_not_mean_that_the_model_is_gone():
    nothing = error("No endpoints found that can handle the requested parameters.", code=404)
    with pytest.raises(ParameterRefused) as raised:
        ask(nothing, status=404, aggregator=True)
    assert raised.value.parameter == "require_parameters"
    with pytest.raises(Refused):
        ask(
            nothing,
            status=404,
            aggregator=True,
            corrections=correcting(refused=frozenset({"require_parameters"})),
        )
    policy = error("No endpoints found matching your data policy (logprobs).", code=404)
    with pytest.raises(Refused):
        ask(policy, status=404, aggregator=True)
    with pytest.raises(NoLogprobs):  # as of any refusal where they were asked for
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
    with pytest.raises(ProviderError) as raised:
        ask(raised_below)
    assert type(raised.value) is failure


def test_what_a_caller_sees_holds_no_word_of_the_provider():
    for status, body, kind in [
        (429, error("provider words"), RateLimited),
        (500, error("provider words"), ModelError),
        (400, error("provider words"), NoAnswer),
        (404, error("provider words"), ModelUnavailable),
    ]:
        with pytest.raises(ProviderError) as raised:
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
    asked = SentCall(
        {"logprobs": True, "temperature": 0}, Redactor(LOGPROBS, "k", Allowance()), True
    )
    read = 0
    templates = [completion("A", tokens=[SURE]), error("m", code="c", param="p", type="t")]
    for template in templates:
        for path in _paths(template):
            for value in odd:
                body = json.dumps(_replaced(template, path, value)).encode()
                for status in (200, 400, 404, 429, 500):
                    try:
                        payload = decoded(body)
                        check_payload(payload, Reply(status, {}, body), asked, NOW)
                        read_chat(payload, True, 100)
                    except ProviderError as failure:
                        assert str(failure)
                    read += 1
    assert read > 1_000


def test_no_more_alternatives_and_tokens_are_read_than_an_honest_server_sends():
    token = {"A": 0.9, **{f"t{n}": 1e-9 for n in range(1_000)}}
    read = read_chat(completion("A" * 1_000, [token] * 1_000), True, most_tokens=10)
    assert len(read.tokens) == 20 + limits.TOKENS_BEYOND
    assert {len(one.alternatives) for one in read.tokens} == {limits.MOST_LOGPROBS}


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


# --- what is kept of a reply until the others of its request are there ---


@pytest.mark.parametrize("wide", ["", "\U0001f600"])
def test_of_a_long_text_and_of_long_alternatives_only_the_beginning_is_kept(wide):
    """Sixty replies wait for each other, and a text with one emoji takes four bytes a character."""
    long = "a" * 1_000_000 + wide
    reply = completion("A", [{"A": 0.6, f"A{long}": 0.2, f"B{long}": 0.1}])
    kept = ask(reply, call=LOGPROBS)
    alternatives = [text for text, _ in kept.tokens[0].alternatives]
    assert alternatives == ["A", "A" + 39 * "a", "B" + 39 * "a"]
    assert len(alternatives[1]) == limits.ALTERNATIVE_CHARS
    assert kept.kept_bytes < 1_500
    said = ask(completion(long))
    assert said.text == long[: limits.REPLY_TEXT_CHARS]
    assert said.kept_bytes < limits.REPLY_TEXT_CHARS + 100


def test_what_is_kept_is_counted_as_its_memory():
    """One character beyond U+FFFF has all of a text take four bytes each."""
    long = "A" + 30 * "b"
    narrow, wide = (
        ask(completion(10 * text, [{text: 0.9, "B": 0.1}] * 10), call=LOGPROBS).kept_bytes
        for text in (long, long + "\U0001f600")
    )
    assert 3_000 < narrow < wide - 1_000


@pytest.mark.parametrize("ends", [["</think>"], ["</", "think", ">"], None])
@pytest.mark.parametrize("newline", ["\n", "<0x0A>"])
def test_alternatives_are_kept_where_a_label_may_stand(ends, newline):
    """Thought before the answer may stand in the text, or in the tokens alone."""
    labels = ["A", newline] * 300
    thought = [" thought"] * 1_000 + (ends or [])
    tokens = [{one: 0.9, "x": 0.1} for one in (*thought, *labels)]
    shown = "".join(thought if ends else ()) + "A\n" * 300
    many = replace(LOGPROBS, max_tokens=2_000)
    read = ask(completion(shown, tokens), call=many).tokens
    assert [token.text for token in read] == [*thought, *labels]
    held = [token.text for token in read if token.alternatives]
    assert held.count("A") == 300 and held.count(" thought") < 700
    assert "\n" not in held
    short = [{one: 0.9, "x": 0.1} for one in (*thought, "A")]
    shown = "".join(thought if ends else ()) + "A"
    read = ask(completion(shown, short), call=many).tokens
    assert read[-1].alternatives and sum(bool(one.alternatives) for one in read) < 20


def test_blanks_at_the_end_that_are_in_the_tokens_alone_leave_a_label_its_alternatives():
    tokens = [{one: 0.9, "x": 0.1} for one in ("A", *[" "] * 200)]
    many = replace(LOGPROBS, max_tokens=400)
    assert ask(completion("A", tokens), call=many).tokens[0].alternatives


def test_tokens_that_spell_far_more_than_labels_are_no_reply():
    tokens = [{"a" * 1_000_000: 0.9, "A": 0.1}]
    with pytest.raises(BadReply, match="far longer than labels"):
        ask(completion("A", tokens), call=LOGPROBS)
