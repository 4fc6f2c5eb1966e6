"""GPUs that Pods share by memory: what a node has, what a Pod asks for and holds, and who has reserved what.

Memory is counted in the units of the resource aliyun.com/gpu-mem, which its device plugin chooses: GiB or MiB. A card
has its index on the node.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

MOST_CARDS = 64  # of one node, whatever it says
MOST_MEMORY = 10**9  # of one Pod or one node
MOST_RESERVATIONS = 1024  # of one node
Shares = tuple[tuple[int, int], ...]  # (card, memory), by card


class CardSizes(NamedTuple):
    """What a node offers: the memory of each card by index, and how much of it the device plugin withholds now.

    `unknown`: why the sizes cannot be told; "" where they can. No sizes and nothing unknown: no shared GPUs.
    `whole`: the node offers whole GPUs, too. `held_whole`: how many of its GPUs Pods hold whole, offered or not.
    """

    sizes: tuple[int, ...] = ()
    withheld: int = 0
    unknown: str = ""
    whole: bool = False
    held_whole: int = 0

    @property
    def shared(self) -> bool:
        """Whether the node offers memory of GPUs."""
        return bool(self.sizes or self.unknown)


NO_CARDS = CardSizes()


class Ask(NamedTuple):
    """What a Pod asks for: so much memory in all, in equal parts on so many cards. `mistake`: why nobody can tell."""

    memory: int = 0
    cards: int = 1
    mistake: str = ""

    @property
    def each(self) -> int:
        """The memory on each card."""
        return self.memory // self.cards


NO_ASK = Ask()


@dataclass(frozen=True, slots=True)
class CardPod:
    """A Pod as far as cards go. `shares` are those that its annotations name; `unreadable`: nobody can tell which.

    `containers`: the memory that each container asks for, in their order. `version` is not compared.
    """

    namespace: str
    name: str
    uid: str
    node: str = ""
    ask: Ask = NO_ASK
    shares: Shares = ()
    unreadable: bool = False
    ended: bool = False  # no container of it runs any more, or ever will
    leaving: bool = False  # it is being deleted
    containers: tuple[int, ...] = ()
    version: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Memory of cards that one Pod was given. `token` is of the bind that wrote it last: nobody else takes it back."""

    pod_uid: str
    namespace: str
    name: str
    shares: Shares
    at: datetime
    token: str = ""


@dataclass(frozen=True, slots=True)
class Ledger:
    """All reservations of one node, in their order. `version` "" where the API server has no ledger of it yet."""

    node: str
    node_uid: str = ""
    reservations: tuple[Reservation, ...] = ()
    version: str = ""

    def of(self, pod_uid: str) -> Reservation | None:
        """What the Pod has reserved."""
        return next((entry for entry in self.reservations if entry.pod_uid == pod_uid), None)

    def having(self, *added: Reservation) -> "Ledger":
        """With these, each in the place of what its Pod had."""
        uids = {entry.pod_uid for entry in added}
        kept = tuple(entry for entry in self.reservations if entry.pod_uid not in uids)
        return replace(self, reservations=(*kept, *added))

    def lacking(self, tokens: Mapping[str, str]) -> "Ledger":
        """Without the reservations of these Pods, each only under the token that it had."""
        kept = tuple(entry for entry in self.reservations if tokens.get(entry.pod_uid) != entry.token)
        return replace(self, reservations=kept)
