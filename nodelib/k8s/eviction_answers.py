"""What the API server answers to an eviction or a deletion of a Pod, and what each answer means. Pure: one table."""

from collections import namedtuple

from nodelib.k8s.api import ApiReply

SEVERAL = "let only one of these PodDisruptionBudgets select it"
OURS = 'webhook "evictions.remediator.dev"'  # deploy/evictions: the controller is asked about each eviction
AWAY = (
    "the API server must reach a replica of the controller (docs/security.md, Evictions of a drain); it is asked again"
)
UNTRUSTED = (
    "put the authority of the controller's certificate into caBundle of ValidatingWebhookConfiguration "
    "remediator-evictions, or turn it off: chart value evictionWebhook.enabled, or leave deploy/evictions out; "
    "it is asked again"
)
ELLIPSIS = " … "  # between words, each of which must be there
UNJUDGED = "nobody judged this eviction: "  # the controller knows by it that no Pod and no budget is in the way


class EvictionAnswer(
    namedtuple(
        "EvictionAnswer", "name status words keeps remedy budgets unjudged", defaults=["", True, "", False, False]
    )
):
    """One row: the HTTP status (its hundreds for a class), and words that its message must have, in any case;
    ELLIPSIS stands for whatever is between two of them.

    `keeps`: the Pod is still there for this reason, and is asked again later. `remedy`: added to what the server says.
    `budgets`: PodDisruptionBudgets are the reason. `unjudged`: nobody was there to say whether the Pod may go, so that
    neither the Pod nor a budget is in the way.
    """

    __slots__ = ()


# The first row that fits counts.
ANSWERS = (
    EvictionAnswer("granted", 2, keeps=False),
    EvictionAnswer("gone", 404, keeps=False),
    # Another Pod has its name by now: the next list has that one, by its own uid.
    EvictionAnswer("replaced", 409, "the uid in the precondition", keeps=False),
    EvictionAnswer("changed meanwhile", 409, remedy="another write came between; it is asked again"),
    # May pass: the server says in Retry-After when to ask again, if it knows.
    EvictionAnswer("held by a budget", 429, "disruption budget", budgets=True),
    EvictionAnswer("too many requests", 429, remedy="the API server sheds load; it is asked again"),
    # Does not pass by itself: the server never evicts such a Pod.
    EvictionAnswer("several budgets", 500, "more than one poddisruptionbudget", remedy=SEVERAL, budgets=True),
    EvictionAnswer("refused by the controller", 403, OURS, remedy="it is asked again"),
    EvictionAnswer("forbidden", 403, remedy="look for a missing right, a webhook or an admission policy"),
    EvictionAnswer("invalid", 422, remedy="look for a webhook or an admission policy"),
    EvictionAnswer(
        "controller not trusted", 500, f"failed calling {OURS}{ELLIPSIS}x509", remedy=UNTRUSTED, unjudged=True
    ),
    EvictionAnswer("controller away", 500, f"failed calling {OURS}", remedy=AWAY, unjudged=True),
    EvictionAnswer("controller cannot tell", 503, OURS, remedy="it is asked again", unjudged=True),
    EvictionAnswer("server error", 5, remedy="the API server, or a webhook, does not work; it is asked again"),
    EvictionAnswer("refused", 4),
)


def answer_of(reply: ApiReply) -> EvictionAnswer:
    """Return the row of a reply; the last one where none fits."""
    message = reply.message.lower()
    coded = (row for row in ANSWERS if reply.status in (row.status, *_class(row)))
    fitting = (row for row in coded if all(words in message for words in row.words.split(ELLIPSIS)))
    return next(fitting, ANSWERS[-1])


def message_of(reply: ApiReply) -> str:
    """Return why a Pod is still there, with the remedy."""
    answer = answer_of(reply)
    return f"{UNJUDGED if answer.unjudged else ''}{reply.message[:300]}{f'; {answer.remedy}' if answer.remedy else ''}"


def _class(row: EvictionAnswer) -> range:
    return range(row.status * 100, row.status * 100 + 100) if row.status < 10 else range(0)
