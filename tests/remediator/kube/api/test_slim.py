"""Ended cases are kept as small as decisions and tickets allow."""

import msgspec
import pytest

from remediator.core import names
from remediator.core.case import AttemptOutcome
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import decode
from tests.bench import ended


def read(**changes):
    """A case that two attempts have cured, with 27 heartbeats and evidence, as the API server sends it."""
    body = ended.case("gpu-1", 1)
    body["metadata"] |= {"uid": "u-1", "resourceVersion": "7"} | changes.pop("metadata", {})
    body["status"] |= changes
    body["status"]["timeline"].append(
        {"at": "2026-11-01T00:00:00Z", "reason": "SharedCause", "message": "as five others"}
    )
    return decode.remediation_case(msgspec.json.decode(msgspec.json.encode(body), type=api.NodeRemediation))


def test_of_an_ended_case_only_what_decisions_and_tickets_need_is_kept():
    case = read()
    assert (case.evidence, [event.reason for event in case.timeline]) == (None, [Reason.SHARED_CAUSE])
    assert [(attempt.outcome, attempt.heartbeats, attempt.boot_id) for attempt in case.attempts] == [
        (AttemptOutcome.FAILED, None, ""),
        (AttemptOutcome.SUCCEEDED, None, ""),
    ]
    assert all(attempt.started and attempt.finished and attempt.message for attempt in case.attempts)
    assert (case.started is None, case.reason, case.message != "") == (False, Reason.VERIFIED, True)


@pytest.mark.parametrize(
    "changes", [{"endedAt": None}, {"metadata": {"finalizers": [names.CASE_FINALIZER]}}], ids=["open", "not released"]
)
def test_a_case_that_something_may_still_be_written_to_is_kept_whole(changes):
    case = read(**changes)
    assert case.evidence
    assert len(case.timeline) == 9
    assert [len(attempt.heartbeats or {}) for attempt in case.attempts] == [27, 27]


def test_words_that_ended_cases_have_in_common_are_one_text():
    one, other = read(), read()
    for word in ("policy", "node", "node_uid", "message"):
        assert getattr(one, word) is getattr(other, word)
    assert one.attempts[0].message is other.attempts[0].message
