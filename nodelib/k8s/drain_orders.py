"""What a drain is told by PARAMETERS: which operation, which case, how, how fast and for how long."""

from collections import namedtuple
from urllib.parse import quote

from nodelib.contract.operation import Refused
from nodelib.contract.parameters import flag, number
from nodelib.k8s.claims import OURS

LONGEST = 366 * 86400.0  # seconds: work may have weeks to end by itself
STRATEGIES = ("Evict", "Delete", "ForceDelete", "EvictThenDelete", "WaitForCompletion", "None")


class Rule(namedtuple("Rule", "namespaces owners labels strategy")):
    """Another strategy for the Pods of these namespaces and kinds of owners that have these labels; empty means any."""

    __slots__ = ()


class Orders(
    namedtuple(
        "Orders",
        "operation operation_uid case_uid strategy timeout rate skip asked delete_for bare empty_dirs rules "
        "override_for",
        defaults=[("", "", ""), 0.0, False, False, (), 0.0],
    )
):
    """PARAMETERS, checked. Times in seconds, `rate` in evictions a second.

    `asked`: the paths of the case, the policy and the namespace that may stop us, "" for one that was not named.
    `delete_for`: for how long before its end EvictThenDelete deletes. `bare`, `empty_dirs`: that Pods without a
    controller, and data in emptyDir, may be lost. `override_for`: for how long before its end it goes against the
    annotations by which owners keep their Pods; 0 for never.
    """

    __slots__ = ()

    @property
    def done(self) -> str:
        """What became of the Pods that it has moved, in words."""
        return "evicted" if self.strategy == "Evict" and not self.rules else "evicted or deleted"


def read_orders(parameters: dict) -> Orders:
    """Return the orders. Raises Refused for what cannot be meant."""
    missing = [name for name in ("operation", "operationUID", "caseUID") if not parameters.get(name)]
    if missing:
        raise Refused(f"PARAMETERS lacks {', '.join(missing)}")
    timeout = number(parameters, "timeoutSeconds", 1800, least=0.01, most=LONGEST)
    return Orders(
        parameters["operation"],
        parameters["operationUID"],
        parameters["caseUID"],
        strategy_in(parameters, "PARAMETERS", "Evict"),
        timeout,
        number(parameters, "perSecond", 5, least=0.01),
        number(parameters, "skipWaitForDeleteSeconds", LONGEST, least=0.01, most=LONGEST),
        (
            path_of(f"{OURS}/noderemediations", parameters, "case"),
            path_of(f"{OURS}/remediationpolicies", parameters, "policy"),
            path_of("/api/v1/namespaces", parameters, "namespace"),
        ),
        max(0.0, timeout - number(parameters, "evictForSeconds", timeout / 2, most=LONGEST)),
        flag(parameters, "deleteBarePods"),
        flag(parameters, "deleteEmptyDirData"),
        tuple(rule_of(rule) for rule in listed(parameters, "rules")),
        max(0.0, timeout - number(parameters, "overrideAnnotationsAfterSeconds", timeout, most=LONGEST)),
    )


def strategy_in(source: dict, what: str, default: str = "") -> str:
    """Return the strategy that is named. Raises Refused for one that there is not."""
    strategy = source.get("strategy", default)
    if strategy not in STRATEGIES:
        raise Refused(f"{what}.strategy is {strategy!r}: write {' or '.join(STRATEGIES)}")
    return strategy


def listed(source: dict, name: str, kind: type = dict) -> list:
    """Return a list of one kind of thing, [] where there is none. Raises Refused for anything else."""
    value = source.get(name, [])
    if not (isinstance(value, list) and all(isinstance(entry, kind) for entry in value)):
        raise Refused(f"{name} is {value!r}: write a list")
    return value


def rule_of(source: dict) -> Rule:
    """Return one rule. Raises Refused for what cannot be meant."""
    labels = (source.get("selector") or {}).get("matchLabels") or {}
    if not isinstance(labels, dict):
        raise Refused(f"matchLabels is {labels!r}: write labels with their values")
    namespaces, owners = (tuple(listed(source, name, str)) for name in ("namespaces", "owners"))
    return Rule(namespaces, owners, labels, strategy_in(source, "rule"))


def path_of(folder: str, parameters: dict, word: str) -> str:
    """Return the path of the object that `word` of PARAMETERS names, "" where it names none."""
    return f"{folder}/{quote(str(parameters[word]), safe='')}" if parameters.get(word) else ""
