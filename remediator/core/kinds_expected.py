"""Kinds of devices that a user expects and that nothing counts, such as one that is misspelt. Pure."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from enum import StrEnum

from remediator.core.device_count import KINDS
from remediator.core.node_inventory import Inventory


class NotCounted(StrEnum):
    """Why there is no number of a kind that there should be some of."""

    UNKNOWN_KIND = "nothing counts this kind"
    NOT_READ = "could not be read now"


def why_not(kind: str) -> NotCounted:
    """Why a node that has counted says nothing of this kind."""
    return NotCounted.NOT_READ if kind in KINDS else NotCounted.UNKNOWN_KIND


def wrong_kinds(inventory: Inventory, counted: Collection[str] = ()) -> Iterator[str]:
    """A sentence for each field of `expected` that misses nothing, ever. `counted`: the kinds that nodes do count.

    >>> next(wrong_kinds(Inventory("h100", expected={"nic": 9})))
    'NodeInventory h100: spec.expected.nic: nothing counts this kind; did you mean nics?'
    """
    known = {*KINDS, *counted}
    for kind in sorted(inventory.expected.keys() - known):
        near = get_close_matches(kind, sorted(known), n=1)
        remedy = f"did you mean {near[0]}?" if near else f"write one of {', '.join(sorted(known))}"
        yield f"NodeInventory {inventory.name}: spec.expected.{kind}: {NotCounted.UNKNOWN_KIND}; {remedy}"
