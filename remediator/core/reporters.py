"""Pods that tell of a node by being Ready: of those who write a Condition only on change, or of any other. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from remediator.core.node import Status
from remediator.core.own_condition import OwnCondition
from remediator.core.policy import Policy

PREFIX = "ReportedBy/"  # of the Conditions that the controller writes of them
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reporter:
    """The Pods of a namespace that have these labels, sorted."""

    namespace: str
    labels: Labels

    @property
    def selector(self) -> str:
        """The labels as a list of Pods takes them."""
        return ",".join(f"{key}={value}" for key, value in self.labels)

    @property
    def condition(self) -> str:
        """The type of the Condition that says whether they are alive.

        >>> Reporter("nvsentinel", (("app", "connector"),)).condition
        'ReportedBy/nvsentinel/app=connector'
        """
        return f"{PREFIX}{self.namespace}/{self.selector}"


@dataclass(frozen=True, slots=True)
class ReporterPod:
    """One of these Pods. Those of DaemonSets, and static ones, speak for their own node, all others for every node."""

    node: str
    everywhere: bool
    ready: bool
    version: str = field(default="", compare=False)

    @property
    def speaks_for(self) -> str:
        """The node; ALL for every one, NONE while it is not Ready."""
        return NONE if not self.ready else ALL if self.everywhere else self.node


ALL, NONE = "*", ""
NO_SUCH_POD = "NoSuchPod"  # the reason of a Condition where no Pod of the cluster has this namespace and these labels


def no_such_pod(type: str) -> str:
    """What is said where none of them exists."""
    return f"no Pod of {type.removeprefix(PREFIX)} exists: see whether the namespace and the labels are right"


def of_condition(type: str) -> Reporter:
    """The inverse of `Reporter.condition`."""
    namespace, _, selector = type.removeprefix(PREFIX).partition("/")
    pairs = (pair.partition("=") for pair in selector.split(","))
    return Reporter(namespace, tuple((key, value) for key, _, value in pairs))


def asked(policy: Policy) -> Iterator[str]:
    """The types of the Conditions of all Pods that a policy names: of those who write, and of those it wants Ready."""
    for clause in (clause for when in policy.when for clause in when.clauses):
        if clause.reporter:
            yield clause.reporter
        if clause.condition.startswith(PREFIX):
            yield clause.condition


def own_condition(type: str, here: bool, everywhere: bool, exist: bool = True) -> OwnCondition:
    """What is said on a node: whether one of them is Ready on it, or anywhere for all nodes.

    Where none of them exists their names are wrong, or they were taken away: that is no fault of any node.
    """
    who = type.removeprefix(PREFIX)
    if not exist:
        return OwnCondition(type, Status.UNKNOWN, NO_SUCH_POD, no_such_pod(type))
    if here:
        return OwnCondition(type, Status.TRUE, "PodReady", f"a Pod of {who} on this node is Ready")
    if everywhere:
        return OwnCondition(type, Status.TRUE, "PodReady", f"a Pod of {who} is Ready")
    return OwnCondition(type, Status.FALSE, "NoPodReady", f"no Pod of {who} is Ready that speaks for this node")
