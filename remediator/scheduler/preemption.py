"""On which nodes it helps to evict Pods for another Pod. Pure.

kube-scheduler decides by its own plugins whom it would evict. Of nodes that its plugins find full it never asks
`filter`, so it would also evict Pods from a node that we refuse, and be refused there again. Only nodes are left on
which the Pod would be let through once its victims are gone; which victims there are is the scheduler's to say.
"""

from collections.abc import Iterable, Mapping

from remediator.core.spare import PodHolding
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from remediator.scheduler.row import STRANGER, NodeState
from remediator.scheduler.verdict import Shape, verdict
from remediator.scheduler.victims import Victims


def worthwhile(
    victims: Mapping[str, Victims],
    rows: Mapping[str, NodeState],
    pods: Mapping[str, PodHolding],
    shape: Shape,
    only_scores: bool,
) -> dict[str, Victims]:
    """The nodes on which the Pod fits without these victims, in the order in which they came.

    `pods`: what Pods hold, by UID. A victim that is not there holds nothing that we have counted. A node that we do not
    know is left, one without victims is not: kube-scheduler takes that for an error.
    """

    def reason(name: str) -> VerdictReason:
        row = rows.get(name, STRANGER)
        evicted = (pods[uid] for uid in dict.fromkeys(victims[name].uids) if uid in pods)
        return verdict(without(row, (pod for pod in evicted if pod.node == name)), shape, only_scores)

    refused = UNRESOLVABLE.keys() | FAILED.keys()
    return {name: theirs for name, theirs in victims.items() if theirs.pods and reason(name) not in refused}


def without(row: NodeState, pods: Iterable[PodHolding]) -> NodeState:
    """The row of a node from which these Pods of it have gone."""
    used, cards = dict(row.used), row.cards
    for pod in pods:
        for name, count in pod.gpus:
            used[name] = used.get(name, 0) - count
        if cards is not None and pod.cards is not None and not pod.cards.ended:
            cards = cards.with_back(pod.cards.shares)
    return row._replace(used=tuple(sorted((name, count) for name, count in used.items() if count > 0)), cards=cards)
