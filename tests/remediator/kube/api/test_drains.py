"""What a drain is told of its template, and that the program reads it as it was meant."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from nodelib.k8s.drain_orders import Rule, read_orders
from nodelib.k8s.eviction_answers import UNJUDGED
from remediator.core import names
from remediator.core.operation import Operation
from remediator.core.template import DrainRule, Strategy, Template
from remediator.kube.api import decode, encode
from remediator.kube.api.builtin import Pod
from remediator.kube.api.operation import NodeOperation
from tests.builders import a_template, minutes

NAMED = {"operation": "op-1", "operationUID": "op-uid", "caseUID": "case-1"}
RULE = DrainRule(Strategy.WAIT_FOR_COMPLETION, ("lab",), {"app": "web"}, ("Job",))


def told(template: Template, left: timedelta) -> Any:
    return read_orders(NAMED | encode.drain_parameters(template, left))


def test_the_program_reads_what_the_controller_tells_it() -> None:
    template = a_template(drain_rules=(RULE,), delete_bare_pods=True, skip_wait_for_delete=minutes(5))
    orders = told(template, minutes(20))
    assert (orders.strategy, orders.timeout, orders.skip) == ("Evict", 1200.0, 300.0)
    assert (orders.bare, orders.empty_dirs) == (True, False)
    assert orders.rules == (Rule(("lab",), ("Job",), {"app": "web"}, "WaitForCompletion"),)


@pytest.mark.parametrize(
    ("evict_for", "left", "deletes"),
    [
        (None, 30, 15.0),  # half of the 30 minutes
        (None, 20, 15.0),  # the first Pod of the drain was lost after ten minutes: it deletes when that one would have
        (None, 10, 10.0),
        (25, 30, 5.0),
        (45, 30, 0.0),  # longer than the drain: it never deletes
    ],
)
def test_a_drain_that_begins_anew_deletes_at_the_same_moment(evict_for, left, deletes) -> None:
    template = a_template(
        strategy=Strategy.EVICT_THEN_DELETE, evict_for=minutes(evict_for) if evict_for is not None else None
    )
    assert told(template, minutes(left)).delete_for == deletes * 60


@pytest.mark.parametrize(
    ("evict_for", "left", "deletes"),
    [
        (5, 10, 5.0),
        (None, 25, 12.5),  # half of what is left is less than half of the 30 minutes
        (None, 10, 5.0),
        (5, 4, 2.0),
        (45, 10, 0.0),  # longer than the drain: it never deletes
    ],
)
def test_a_drain_that_begins_anew_where_nobody_has_judged_evicts_first_and_still_deletes(
    evict_for, left, deletes
) -> None:
    template = a_template(
        strategy=Strategy.EVICT_THEN_DELETE, evict_for=minutes(evict_for) if evict_for is not None else None
    )
    orders = read_orders(NAMED | encode.drain_parameters(template, minutes(left), unjudged=True))
    assert (orders.timeout, orders.delete_for) == (left * 60.0, deletes * 60)
    if evict_for == 5:
        assert told(template, minutes(left)).delete_for == left * 60.0, "else it deletes at once"


@pytest.mark.parametrize(
    ("after", "left", "overrides"),
    [(None, 30, 0.0), (20, 30, 10.0), (20, 15, 10.0), (20, 5, 5.0)],  # the third: a drain that begins anew
)
def test_annotations_are_overridden_only_where_the_template_says_so(after, left, overrides) -> None:
    template = a_template(override_annotations_after=minutes(after) if after else None)
    assert told(template, minutes(left)).override_for == overrides * 60


def test_a_pod_of_a_user_is_read_with_its_labels_and_its_controller() -> None:
    owners = [{"kind": "Node"}, {"kind": "Job", "controller": True}]
    meta = {"name": "p", "namespace": "team", "labels": {"a": "b"}, "ownerReferences": owners}
    wire = {"metadata": meta, "status": {"phase": "Failed"}}
    pod = decode.user_pod(msgspec.convert(wire, Pod))
    assert (pod.name, pod.namespace, pod.labels, pod.owner) == ("p", "team", {"a": "b"}, "Job")
    assert (pod.mirror, pod.ended, pod.deletion) == (False, True, None)


def drained(blocked: list[dict[str, str]]) -> Operation:
    """An operation whose drain says this."""
    spec = {"nodeName": "gpu-1", "nodeUID": "u", "caseUID": "c", "templateName": "reboot"}
    status = {"drain": {"left": len(blocked), "blocked": blocked}}
    return decode.operation(
        msgspec.convert({"metadata": {"name": "op", "uid": "o"}, "spec": spec, "status": status}, NodeOperation)
    )


@pytest.mark.parametrize(
    ("said", "unjudged"),
    [([], False), (["still ending"], False), (["still ending", f"{UNJUDGED}no endpoints; it is asked again"], True)],
)
def test_of_a_drain_is_read_whether_it_waits_for_somebody_to_judge_its_evictions(said, unjudged) -> None:
    blocked = [{"pod": "team/a", "pdb": "", "message": message} for message in said]
    assert drained(blocked).unjudged is unjudged


def test_program_and_controller_name_the_answer_of_nobody_alike() -> None:
    assert names.UNJUDGED == UNJUDGED


def test_pods_that_wait_for_somebody_to_judge_come_first_in_a_text_that_is_cut() -> None:
    many = [{"pod": f"team/{number:03}", "pdb": f"budget-{number:03}"} for number in range(200)]
    found = drained([*many, {"pod": "team/last", "message": f"{UNJUDGED}no answer"}])
    assert (found.unjudged, len(found.blocked)) == (True, 2000)
