"""All that one replica runs for GPUs that Pods share by memory."""

from dataclasses import dataclass
from typing import Self

from remediator.clock import Clock
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.scheduler.shared.bind import Binder
from remediator.scheduler.shared.books import Books
from remediator.scheduler.shared.store import Store
from remediator.scheduler.shared.sweep import LedgerSweep


@dataclass(frozen=True, slots=True)
class SharedGpus:
    """What is known, who binds, and who puts ledgers right."""

    books: Books
    binder: Binder
    sweep: LedgerSweep

    @classmethod
    def over(cls, client: Client, informers: Informers, clock: Clock) -> Self:
        """Of one replica. Watches ledgers and ConfigMaps from now on."""
        books, store = Books(informers), Store(client, clock)
        return cls(books, Binder(store, books, clock), LedgerSweep(store, books, clock))
