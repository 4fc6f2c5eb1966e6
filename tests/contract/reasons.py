"""What each reason of a case or an operation that holds nothing means, for docs/reasons.md."""

from collections.abc import Iterable, Sequence

from remediator.core.reasons import REMEDY, WARNINGS, Reason

MEANING = {
    Reason.HELD_LONG: "Something that no user has chosen holds the case for so long that a person is told.",
    Reason.DETECTED: "Kept in place of a word that this version does not know: another version has written it.",
    Reason.CLAIMED: "The case has its entry in each budget, and its node is cordoned and tainted.",
    Reason.DIAGNOSED: "The evidence is in `status.evidence`.",
    Reason.DIAGNOSIS_FAILED: "There is no evidence; the case goes on without.",
    Reason.RESUMED: "What stopped the case in its middle is over, and it goes on.",
    Reason.STARTED: "An attempt begins: its NodeOperation is made.",
    Reason.DRAINING: "The node of the attempt is drained; the message names what is in the way.",
    Reason.OPERATING: "The Pod of the attempt acts.",
    Reason.SUCCEEDED: "The operation has succeeded. The node is given back only once it is proven healthy.",
    Reason.FAILED: "The operation has failed.",
    Reason.REFUSED: "The program of the operation refused before it did anything, or nobody may ask for this one.",
    Reason.STOPPED: "The attempt was stopped before it acted, and counts as none.",
    Reason.VERIFY_TIMEOUT: "The node was not proven healthy within `verify.timeout`: a person has the case.",
    Reason.PROBING: "The Conditions are healthy, and the probe of the policy tries the node.",
    Reason.HEALTHY_AGAIN: "A case that a person has shows healthy Conditions again: they may give the node back.",
    Reason.RETRIED_BY_USER: "A user lets the case try again.",
    Reason.TAKEN_OUT: "A user keeps the node out of service.",
    Reason.TAKE_OUT_OVERDUE: "The time is over until which a user wanted the node out of service.",
    Reason.VERIFIED: "The node has proven its health after what was done, and is back.",
    Reason.CLEARED_ITSELF: "The fault went before anything was done.",
    Reason.LADDER_EXHAUSTED: "The last rung did not help: a person has the case.",
    Reason.ATTEMPTS_SPENT: "All attempts that `attempts` of the policy allows did not help: a person has the case.",
    Reason.RELAPSED: "The fault came back a second time, so that nothing is tried: a person has the case.",
    Reason.LEMON: "The node, or one of its boards, has had as many cases as `spec.lemon` names: a person has the case.",
    Reason.CASE_DELETED: "The case was deleted, which gives its node back.",
    Reason.TAINT_REMOVED_BY_USER: "A user took the taint of the case off its node.",
    Reason.ADMITTED_BY_USER: "A user took the taint of a new node off: it works without a proof.",
    Reason.NODE_GONE: "There is no such node, or not this one any more.",
    Reason.OPERATION_DELETED: "The NodeOperation by which a user has asked for the case was deleted.",
    Reason.GAVE_WAY: "Another case of the node goes first.",
    Reason.RELEASED_BY_USER: "A person gave the node back.",
    Reason.RELEASED_HEALTHY: "A node that waited for a person has proven its health, as its policy asks for.",
    Reason.DRAIN_FAILED: "The program that drains the node has failed.",
    Reason.DRAIN_TIMEOUT: "The node was not empty within `drain.timeout`.",
    Reason.PROGRAM_FAILED: "The program of the operation says that it failed.",
    Reason.TIMED_OUT: "The time of the template was over.",
    Reason.POD_NOT_STARTED: "The kubelet reports, and did not start the Pod.",
    Reason.POD_EVICTED: "The kubelet or the API server evicted the Pod.",
    Reason.POD_DELETED: "Somebody deleted the Pod.",
    Reason.POD_LOST: "The Pod ended without a result: killed, out of memory, or its image has no such program.",
    Reason.KUBELET_SILENT: "The kubelet does not report, so that nobody knows whether the Pod runs.",
    Reason.WATCHDOG_SILENT: "No watchdog of the node took the order.",
    Reason.DONE: "It was done.",
    Reason.CLAIM_LOST: "The case has ended, or its node is not its own any more.",
    Reason.REBOOTED: "The node has booted since, so that what it shows now is waited for.",
    Reason.UNHEALTHY_AGAIN: "The fault shows while the node should be tried: there is no health to prove.",
    Reason.NOT_CURRENT_ATTEMPT: "No case makes this attempt now: only the controller makes operations of a case.",
    Reason.CASE_GONE: "The case of an operation that a user asked for was taken away.",
}
_ALL = list(Reason)
_MILESTONE, _END, _OPERATION = (_ALL.index(each) for each in (Reason.HELD_LONG, Reason.VERIFIED, Reason.DRAIN_FAILED))
HOLDS = _ALL[:_MILESTONE]
SECTIONS = {
    "what happens in a case": _ALL[_MILESTONE:_END],
    "how a case ends": _ALL[_END:_OPERATION],
    "how an operation ends": _ALL[_OPERATION:],
}


def drawings() -> dict[str, str]:
    """The table of each section, by its name."""
    *of_cases, of_operations = SECTIONS
    ends = {
        of_operations: _table(("reason", "means"), ((_word(each), MEANING[each]) for each in SECTIONS[of_operations]))
    }
    return {name: _table(("reason", "Event", "means"), map(_row, SECTIONS[name])) for name in of_cases} | ends


def _row(reason: Reason) -> tuple[str, str, str]:
    helps = f" What helps: {REMEDY[reason]}." if reason in REMEDY else ""
    return _word(reason), "Warning" if reason in WARNINGS else "Normal", MEANING[reason] + helps


def _word(reason: Reason) -> str:
    return f"`{reason.value}`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---").replace("|--- |", "|---|")
