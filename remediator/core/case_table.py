"""What is observed of a case, and what comes next: one table, with the reason of every row."""

from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.health import Health
from remediator.core.proof import Proof
from remediator.core.table import Row, Table


class Tried(Enum):
    """How the newest attempt of a case stands."""

    NONE = auto()
    OPEN = auto()
    REPORTED = auto()  # its operation has ended, the case has not recorded it
    SUCCEEDED = auto()
    FAILED = auto()
    KEEPS_NODE = auto()  # it and what completes it have succeeded, and its user keeps the node


@dataclass(frozen=True, slots=True)
class CaseObservation:
    """What is observed of one case."""

    ended: bool  # nothing more is tried and the node is given back
    escalated: bool  # it was handed to a user
    outranked: bool  # it has disturbed nothing and only waits, and a more severe case waits for nothing but its node
    leave: bool  # it must end: deleted, released, or a user took our marks off
    pods: bool  # Pods of ours are still there
    marks: bool  # taint, ledger entry, finalizer: anything of ours that must go
    claimed: bool
    diagnosed: bool  # collect-diagnostics was recorded
    health: Health
    tried: Tried
    proof: Proof
    rungs: bool  # something is left to try
    known: bool  # earlier cases of the node, or of a board in it, say that a person must look
    follow: bool  # the newest attempt succeeded, and its template wants another operation after it
    uncordoned: bool  # a user has taken our cordon off, and the node still calls it ours
    stopped: bool  # a user, or the policy, lets nothing new begin: by a hold, a mode, windows, work that is waited for


class CaseStep(Enum):
    """What a pass over a case does."""

    NOTHING = auto()
    DELETE_PODS = auto()
    RELEASE = auto()  # take the marks off node, ledgers and case
    STOP = auto()  # wait for the running operation to be cancelled or to end
    END = auto()
    GIVE_WAY = auto()  # end the case, so that a more severe one takes the node
    CLEAR = auto()  # end the case: the fault went by itself before we did anything
    CLAIM = auto()
    DISOWN = auto()  # no longer call a cordon ours that a user has taken off
    HOLD = auto()  # show what stops the case, and wait for its end
    DIAGNOSE = auto()
    START = auto()
    FOLLOW = auto()  # what the operation's template wants done after it
    PROBE = auto()  # the operation that must succeed before the node is given back
    WATCH = auto()
    RECORD = auto()
    VERIFY = auto()
    RECOVER = auto()
    TAKE_OUT = auto()  # the node is its user's, until they give it back
    ESCALATE = auto()
    OFFER = auto()  # say whether the node could be given back


CASE_TABLE: Table[CaseStep] = Table(
    (
        Row(
            {"ended": True, "pods": True},
            CaseStep.DELETE_PODS,
            "First of all: a Pod of an ended case may still act on the node. If the marks went before it, "
            "another case could claim the node beside a Pod that runs.",
        ),
        Row(
            {"ended": True, "marks": True},
            CaseStep.RELEASE,
            "Nothing of ours runs on the node any more, so it can be given back. If the row that does nothing "
            "came first, taint and ledger entries would stay for ever.",
        ),
        Row(
            {"ended": True},
            CaseStep.NOTHING,
            "Nothing of ours is left. All rows below are about open cases; an ended one must not be claimed "
            "or tried again.",
        ),
        Row(
            {"tried": Tried.REPORTED},
            CaseStep.RECORD,
            "The outcome of an operation is recorded before anything else is decided. If the case ended "
            "first, its attempt would stay open, and the heartbeats from which recovery is proven would be "
            "lost.",
        ),
        Row(
            {"leave": True, "tried": Tried.OPEN},
            CaseStep.STOP,
            "A case that must end waits until its operation has been cancelled or has ended. If the case "
            "ended first, the Pods of the operation would be deleted in the middle of their work.",
        ),
        Row(
            {"leave": True},
            CaseStep.END,
            "Nothing runs, so the case can end. It stands above claim, start and escalation: a user who "
            "deletes or releases the case, or takes its taint off, is obeyed at the next step.",
        ),
        Row(
            {"claimed": True, "uncordoned": True},
            CaseStep.DISOWN,
            "A user has taken our cordon off, and may cordon the node for a reason of their own at any time. The mark "
            "goes before anything else is done, or the end of the case would take that cordon off.",
        ),
        Row(
            {"escalated": True},
            CaseStep.OFFER,
            "A user has the case now: it only says whether its node has become healthy, and is released by itself "
            "where its policy says so. It stands below the rows that end a case, since a release must still work, and "
            "above the rows that act, since nothing is tried after the hand-over unless a user asks for it.",
        ),
        Row(
            {"claimed": False, "health": Health.HEALTHY},
            CaseStep.CLEAR,
            "The fault has gone before we touched the node. It stands above the claim, or a healthy node "
            "would be taken out of service.",
        ),
        Row(
            {"claimed": False},
            CaseStep.CLAIM,
            "All rows below disturb the node or judge what was done to it, so the node must be ours first. "
            "Health that is Unknown comes here, too: admission holds the case until it is known.",
        ),
        Row(
            {"outranked": True, "pods": False},
            CaseStep.GIVE_WAY,
            "The case only waits for a window, an approval or Pods, and disturbed nothing, while a more severe "
            "fault shows there that could be repaired now. It stands above all that holds or begins something, or the "
            "more severe fault would wait as well. No Pod of this case is left. Its fault gets another case "
            "afterwards.",
        ),
        Row(
            {"stopped": True, "diagnosed": False, "pods": False},
            CaseStep.HOLD,
            "A user stops the case before its first Pod. It stands above the row that makes this Pod; a Pod that is "
            "there already is recorded all the same.",
        ),
        Row(
            {"diagnosed": False},
            CaseStep.DIAGNOSE,
            "Evidence is collected after the claim and before the first operation, which may destroy it: a "
            "reboot empties the kernel log.",
        ),
        Row(
            {"tried": Tried.OPEN},
            CaseStep.WATCH,
            "An operation runs. If a row below came first, the node would be judged in the middle of it, or a "
            "second operation would start beside it.",
        ),
        Row(
            {"stopped": True, "follow": True},
            CaseStep.HOLD,
            "What completes an operation disturbs the node as well, so a user stops it like a start. It stands above "
            "the row that begins it.",
        ),
        Row(
            {"follow": True},
            CaseStep.FOLLOW,
            "The operation succeeded, but what completes it has not run yet: after a GPU reset the device "
            "plugin must be restarted. If recovery were judged first, the node would come back without its "
            "GPUs.",
        ),
        Row(
            {"tried": Tried.KEEPS_NODE},
            CaseStep.TAKE_OUT,
            "The operation has succeeded, and its user keeps the node. It stands above the proof of health, which "
            "would give the node back, and above the stops: it disturbs nothing.",
        ),
        Row(
            {"proof": Proof.PASSED},
            CaseStep.RECOVER,
            "The node has proven its health. It stands above every start: nothing more is tried on a healthy "
            "node, and an empty ladder cannot keep it out of service.",
        ),
        Row(
            {"stopped": True, "proof": Proof.PROBE},
            CaseStep.HOLD,
            "A probe is a Pod on the node, so a user stops it like a start. It stands above the row that begins it.",
        ),
        Row(
            {"proof": Proof.PROBE},
            CaseStep.PROBE,
            "The conditions are healthy, and the policy wants that tried out. It stands above the starts: the node "
            "shows no fault now.",
        ),
        Row(
            {"tried": Tried.SUCCEEDED, "proof": Proof.WAITING},
            CaseStep.VERIFY,
            "After a success the condition shows the old fault until its detector has run again. If the next "
            "start came first, a cured node would be operated on again. A failed attempt does not wait here.",
        ),
        Row(
            {"known": True, "health": Health.UNHEALTHY},
            CaseStep.ESCALATE,
            "Node and board have had so many cases that another repair would only hide the fault. It stands below the "
            "row that collects evidence, since serial numbers are part of it, and above the start of an operation.",
        ),
        Row(
            {"known": True, "proof": Proof.REFUTED},
            CaseStep.ESCALATE,
            "The conditions are healthy, but the probe says what earlier cases have said: the fault is still there, "
            "and a person must look. It stands above the start that a probe which has failed leads to.",
        ),
        Row(
            {"health": Health.UNHEALTHY, "rungs": True},
            CaseStep.START,
            "The fault shows and something is left to try. It stands below all that proves recovery. Health "
            "that is Unknown starts nothing.",
        ),
        Row(
            {"health": Health.HEALTHY, "proof": Proof.REFUTED, "rungs": True},
            CaseStep.START,
            "The conditions are healthy, but the probe has failed: the attempt was in vain, and the next one comes. It "
            "asks for conditions that are clear, as every start does.",
        ),
        Row(
            {"proof": Proof.REFUTED},
            CaseStep.ESCALATE,
            "The probe has failed and nothing is left to try. It stands below the start, and above the wait, which "
            "nothing would end.",
        ),
        Row(
            {"health": Health.UNHEALTHY},
            CaseStep.ESCALATE,
            "The fault shows and nothing is left to try. It stands above the wait for proof, which would only "
            "delay the person who must look.",
        ),
        Row(
            {"stopped": True},
            CaseStep.HOLD,
            "Nobody works on the node while a user stops the case, so it is no failure that the time for proof is "
            "over. It stands above the row that would escalate it, and above the wait, which shows no reason.",
        ),
        Row(
            {"proof": Proof.WAITING},
            CaseStep.VERIFY,
            "Neither fault nor health is proven, and the time for proof is not over. The wait ends by itself, "
            "since proof times out.",
        ),
        Row(
            {},
            CaseStep.ESCALATE,
            "Health was not proven in time. The last row answers for all that is left, so that no case waits for ever.",
        ),
    )
)


def case_step(observation: CaseObservation) -> CaseStep:
    """What a pass over the case does next."""
    return CASE_TABLE.result(observation)
