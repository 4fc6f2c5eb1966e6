"""What is observed of an operation that a user has made, and what comes next: one table, each row with its reason."""

from dataclasses import dataclass
from enum import Enum, auto

from remediator.core.table import Row, Table


class Carried(Enum):
    """How the case of a user's operation stands."""

    ABSENT = auto()  # none was opened
    OPEN = auto()
    OVER = auto()  # it has ended, or a person has it
    GONE = auto()  # one was opened, and is not there any more


@dataclass(frozen=True, slots=True)
class RequestObservation:
    """What is observed of an operation that has no case in its spec."""

    ended: bool
    case: Carried
    deleting: bool
    node: bool  # the node that it names is there, and is the one that was meant


class RequestStep(Enum):
    """What a pass over it does."""

    NOTHING = auto()
    FINISH = auto()  # say what became of it
    SHOW = auto()  # say how far its case is
    GIVE_UP = auto()  # its case was taken away
    REFUSE = auto()  # there is no such node
    OPEN = auto()  # open its case


REQUEST_TABLE: Table[RequestStep] = Table(
    (
        Row(
            {"ended": True},
            RequestStep.NOTHING,
            "The user was told what became of it. All rows below are about one that goes on; another try is another "
            "NodeOperation.",
        ),
        Row(
            {"case": Carried.OVER},
            RequestStep.FINISH,
            "Its case has ended, so the operation ends with it. It stands above the rows that open a case, or what "
            "was done would be done again.",
        ),
        Row(
            {"case": Carried.OPEN},
            RequestStep.SHOW,
            "Its case goes on under the guards of every case; the operation only shows how far it is. It stands above "
            "the deletion, which the case itself observes.",
        ),
        Row(
            {"case": Carried.GONE},
            RequestStep.GIVE_UP,
            "Somebody took its case away, by force or with a restored backup. It stands above the row that opens one: "
            "nobody knows what was done already, so it is not done again.",
        ),
        Row(
            {"deleting": True},
            RequestStep.NOTHING,
            "The user has taken it back before anything was begun. No case is opened for it.",
        ),
        Row(
            {"node": False},
            RequestStep.REFUSE,
            "The node is not there, or is another machine under its name. It stands above the row that opens the "
            "case, which would end at once without a word to the user.",
        ),
        Row({}, RequestStep.OPEN, "Nothing has been done yet, and the node is there: its case is opened."),
    )
)


def request_answer(observation: RequestObservation) -> RequestStep:
    """What a pass over a user's operation does next."""
    return REQUEST_TABLE.result(observation)
