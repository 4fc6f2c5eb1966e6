"""What each answer to an eviction means."""

import json

import pytest

from nodelib.k8s.api import ApiReply
from nodelib.k8s.eviction_answers import ANSWERS, OURS, SEVERAL, UNJUDGED, answer_of, message_of

BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
TWICE = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
REPLACED = (
    'Operation cannot be fulfilled on pods "a": the UID in the precondition (x) does not match the UID in record (y). '
    "The object might have been deleted and then recreated"
)
SAID = [
    (200, "", "granted", False),
    (201, "", "granted", False),
    (404, 'pods "a" not found', "gone", False),
    (409, REPLACED, "replaced", False),
    (409, "the object has been modified", "changed meanwhile", True),
    (429, BUDGET, "held by a budget", True),
    (429, "too many requests, please try again later", "too many requests", True),
    (500, TWICE, "several budgets", True),
    (500, "failed calling webhook", "server error", True),
    (504, "timeout", "server error", True),
    (500, f"Internal error occurred: failed calling {OURS}: connection refused", "controller away", True),
    (500, f"failed calling {OURS}: tls: failed to verify certificate: x509: unknown", "controller not trusted", True),
    (500, "failed calling another webhook: x509: unknown", "server error", True),
    (503, f"admission {OURS} denied the request: cannot be read", "controller cannot tell", True),
    (403, f"admission {OURS} denied the request: not on n1", "refused by the controller", True),
    (403, "pods is forbidden", "forbidden", True),
    (422, "is invalid", "invalid", True),
    (400, "bad request", "refused", True),
]


def reply(status, message=""):
    return ApiReply(status, json.dumps({"message": message}).encode(), {})


@pytest.mark.parametrize(("status", "message", "name", "keeps"), SAID)
def test_each_answer_has_its_name_and_says_whether_the_pod_is_still_there(status, message, name, keeps):
    answer = answer_of(reply(status, message))
    assert (answer.name, answer.keeps) == (name, keeps)


def test_every_row_is_reached():
    assert [row.name for row in ANSWERS if row.name not in {name for _, _, name, _ in SAID}] == []


def test_a_pod_under_two_budgets_is_named_with_what_to_do():
    assert message_of(reply(500, TWICE)) == f"{TWICE}; {SEVERAL}"
    assert message_of(reply(429, BUDGET)) == BUDGET


def test_a_certificate_that_is_not_trusted_is_told_with_what_to_do():
    said = f"failed calling {OURS}: tls: failed to verify certificate: x509: certificate signed by unknown authority"
    told = message_of(reply(500, said))
    assert "into caBundle of ValidatingWebhookConfiguration remediator-evictions" in told
    assert "evictionWebhook.enabled" in told
    assert "must reach a replica" not in told


def test_budgets_are_named_for_what_they_have_refused_and_for_nothing_else():
    assert [row.name for row in ANSWERS if row.budgets] == ["held by a budget", "several budgets"]


def test_what_nobody_has_judged_begins_with_that():
    assert message_of(reply(503, f"{OURS} denied the request: unread")).startswith(UNJUDGED)
    assert message_of(reply(500, f"failed calling {OURS}: no endpoints")).startswith(UNJUDGED)
    assert not message_of(reply(500, "failed calling another webhook")).startswith(UNJUDGED)


def test_a_controller_that_does_not_answer_is_told_with_what_to_look_for():
    said = f"failed calling {OURS}: failed to call webhook: no endpoints available"
    assert "must reach a replica of the controller" in message_of(reply(500, said))
    assert message_of(reply(403, f"admission {OURS} denied the request: a drain touches no mirror Pod")).endswith(
        "a drain touches no mirror Pod; it is asked again"
    )
