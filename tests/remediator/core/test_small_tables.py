"""The tables of what a user asks for, and of what a person has: total, without a dead row, each row with its reason."""

import itertools
from collections import Counter
from dataclasses import fields
from typing import get_type_hints

import pytest

from remediator.core.offer import OFFER_TABLE, Offer, OfferObservation, gives_back, offer
from remediator.core.outside_request import (
    OUTSIDE_TABLE,
    Answered,
    OperationProgress,
    OutsideObservation,
    OutsideStep,
    step,
)
from remediator.core.policy import Release
from remediator.core.proof import Proof
from remediator.core.reasons import Reason
from remediator.core.request_table import REQUEST_TABLE, Carried, RequestObservation, RequestStep, request_answer
from tests.builders import a_case, a_policy, at


def everything(seen):
    """Everything that can be observed."""
    hints = get_type_hints(seen)
    values = [(False, True) if hints[item.name] is bool else tuple(hints[item.name]) for item in fields(seen)]
    return [seen(*combination) for combination in itertools.product(*values)]


TABLES = [
    pytest.param(REQUEST_TABLE.rows, RequestObservation, RequestStep, id="requests"),
    pytest.param(OUTSIDE_TABLE.rows, OutsideObservation, OutsideStep, id="requests of other controllers"),
    pytest.param(OFFER_TABLE.rows, OfferObservation, Offer, id="offers"),
]


@pytest.mark.parametrize(("rows", "seen", "results"), TABLES)
def test_every_row_is_the_first_that_fits_somewhere_and_every_result_is_given(rows, seen, results):
    first = Counter(next(number for number, row in enumerate(rows) if row.fits(one)) for one in everything(seen))
    assert set(first) == set(range(len(rows)))
    assert {row.result for row in rows} == set(results)
    assert all(len(row.why) >= 40 and row.why.endswith(".") for row in rows)


def test_a_case_is_opened_only_for_what_goes_on_and_never_had_one():
    opened = [seen for seen in everything(RequestObservation) if request_answer(seen) is RequestStep.OPEN]
    assert opened == [RequestObservation(ended=False, case=Carried.ABSENT, deleting=False, node=True)]


def test_an_operation_is_made_for_another_controller_only_for_what_is_held_wanted_and_never_had_one():
    asked = [seen for seen in everything(OutsideObservation) if step(seen) is OutsideStep.ASK]
    fresh = OutsideObservation(
        deleting=False,
        withdrawn=False,
        held=True,
        answered=Answered.NOTHING,
        operation=OperationProgress.ABSENT,
        released=True,
        meant=True,
        node=True,
    )
    assert asked == [fresh]


def test_a_node_is_given_back_by_itself_only_with_proof_and_where_the_policy_says_so():
    for seen in everything(OfferObservation):
        if offer(seen) in (Offer.RELEASE, Offer.PROBE):
            assert seen.by_itself
            assert seen.conditions
            assert not seen.running
        if offer(seen) is Offer.RELEASE:
            assert seen.proof is Proof.PASSED


@pytest.mark.parametrize(
    ("release", "ended", "reason", "expected"),
    [
        pytest.param(Release.WHEN_HEALTHY, None, None, True, id="the first time"),
        pytest.param(Release.MANUAL, None, None, False, id="the policy leaves it to a person"),
        pytest.param(Release.WHEN_HEALTHY, 30, Reason.RELEASED_HEALTHY, False, id="not again within the window"),
        pytest.param(Release.WHEN_HEALTHY, -30, Reason.RELEASED_HEALTHY, True, id="but after it"),
        pytest.param(Release.WHEN_HEALTHY, 30, Reason.RELEASED_BY_USER, True, id="what a person released is theirs"),
        pytest.param(Release.WHEN_HEALTHY, 30, Reason.VERIFIED, True, id="a recovery is no release"),
    ],
)
def test_a_case_is_released_by_itself_once_within_the_window_of_its_attempts(release, ended, reason, expected):
    policy = a_policy(window=60, release=release)
    others = [a_case("before", ended=at(ended), reason=reason)] if ended is not None else []
    assert gives_back(policy, a_case(), [*others, a_case()], at(60)) is expected


def test_without_its_policy_nobody_knows_whether_it_may_be_released():
    assert not gives_back(None, a_case(), [], at(0))


@pytest.mark.parametrize("reason", [Reason.LEMON, Reason.RELAPSED])
def test_a_node_whose_fault_comes_back_is_not_given_back_by_itself(reason):
    assert not gives_back(a_policy(window=60, release=Release.WHEN_HEALTHY), a_case(reason=reason), [], at(0))
