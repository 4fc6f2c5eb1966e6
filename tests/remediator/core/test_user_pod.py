"""Which Pods of a node a drain must see gone."""

from datetime import timedelta

import pytest

from remediator.core.template import DrainRule, Strategy
from remediator.core.user_pod import UserPod, pods_to_drain
from tests.builders import a_template, at

OURS = "remediator-operations"
NOW, FIVE = at(60), timedelta(minutes=5)


def there(**facts):
    return UserPod("p", **{"namespace": "team", "owner": "Job"} | facts)


def ending(ago: float) -> UserPod:
    """A Pod that should have ended so many minutes ago."""
    return there(deletion=NOW - timedelta(minutes=ago))


@pytest.mark.parametrize(
    ("pod", "skip", "stays"),
    [
        pytest.param(there(), None, False, id="one that runs"),
        pytest.param(there(owner=""), None, False, id="a bare one, whatever keeps the drain from asking it"),
        pytest.param(there(namespace=OURS), None, True, id="one of our own"),
        pytest.param(there(namespace="kube-system"), None, True, id="one of the cluster itself"),
        pytest.param(there(owner="DaemonSet"), None, True, id="one of a DaemonSet"),
        pytest.param(there(mirror=True), None, True, id="a static one"),
        pytest.param(there(ended=True), None, True, id="one that has ended"),
        pytest.param(ending(60), None, False, id="overdue by an hour, and waited for"),
        pytest.param(ending(6), FIVE, True, id="overdue by six minutes of five"),
        pytest.param(ending(5), FIVE, False, id="overdue by just five of five"),
        pytest.param(there(), FIVE, False, id="nobody has asked it to go"),
    ],
)
def test_a_drain_sees_the_pods_gone_that_can_go(pod, skip, stays) -> None:
    template = a_template(skip_wait_for_delete=skip)
    assert pods_to_drain([pod], OURS, template, NOW) == ([] if stays else [pod])


CACHE = DrainRule(Strategy.NONE, labels={"app": "cache"})
JOBS = DrainRule(Strategy.WAIT_FOR_COMPLETION, namespaces=("team",), owners=("Job",))


@pytest.mark.parametrize(
    ("strategy", "pod", "stays"),
    [
        (Strategy.EVICT, there(labels={"app": "cache"}), True),
        (Strategy.EVICT, there(labels={"app": "web"}), False),
        (Strategy.NONE, there(), False),  # the rule for Jobs waits for it
        (Strategy.NONE, there(owner="ReplicaSet"), True),
        (Strategy.NONE, there(namespace="lab"), True),
        (Strategy.NONE, there(labels={"app": "cache"}), True),  # the first rule that applies
    ],
)
def test_pods_whose_strategy_is_none_may_stay(strategy, pod, stays) -> None:
    template = a_template(strategy=strategy, drain_rules=(CACHE, JOBS))
    assert pods_to_drain([pod], OURS, template, NOW) == ([] if stays else [pod])


def test_a_template_drains_where_one_of_its_rules_does() -> None:
    none = Strategy.NONE
    found = [a_template(strategy=none, drain_rules=rules).drains for rules in ((), (CACHE,), (CACHE, JOBS))]
    assert found == [False, False, True]
