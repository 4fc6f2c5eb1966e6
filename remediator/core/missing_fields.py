"""What definitions of our kinds lack that are older than this version, and the command that brings them up to date."""

from collections.abc import Mapping, Sequence

REASON = "DefinitionsOutdated"
REMEDY = "remediator crds --apply"
WHOLE = "its whole definition"
MOST_NAMED = 3  # fields of a kind

Missing = Mapping[str, Sequence[str]]  # the fields, by the name of the kind


def in_words(missing: Missing) -> str:
    """The kinds, each with some of its fields.

    >>> in_words({"Ticket": ("spec.a", "spec.b", "status.c", "status.d"), "NodeOperation": ("status.e",)})
    'NodeOperation lacks status.e; Ticket lacks spec.a, spec.b, status.c and 1 more'
    """
    return "; ".join(f"{kind} lacks {_listed(fields)}" for kind, fields in sorted(missing.items()))


def _listed(fields: Sequence[str]) -> str:
    more = f" and {len(fields) - MOST_NAMED} more" if len(fields) > MOST_NAMED else ""
    return ", ".join(fields[:MOST_NAMED]) + more
