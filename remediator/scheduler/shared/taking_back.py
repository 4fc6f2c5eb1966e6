"""Taking a reservation back: by the bind that made it, and by the sweep where nobody else will."""

from remediator.core.shared_gpus import Ledger, Reservation
from remediator.kube.wire import errors
from remediator.scheduler.shared.ledger import Fate, fate
from remediator.scheduler.shared.store import Store


async def take_back(store: Store, node: str, sizes: tuple[int, ...], entry: Reservation, *, alone: bool) -> Fate:
    """Take a reservation out of the ledger unless its Pod holds the cards; what has become of the Pod.

    `alone`: no bind for this Pod that could still count has been begun under it. Otherwise its Pod is fenced first,
    which refuses those that are under way. What is reserved under another token by then stays. Raises ApiError, and
    ValueError for a Pod that cannot be read; then the reservation is still there.
    """
    live = await store.pod(entry.namespace, entry.name)
    what = fate(entry, node, live)
    if what is Fate.HOLDS:
        return what
    if what is Fate.UNBOUND and live is not None and not alone:
        try:
            await store.fence(live, entry.token or entry.pod_uid)
        except errors.NotFound:
            what = Fate.FREE
    await store.write(node, sizes, lambda ledger: _without(ledger, entry))
    return what


def _without(ledger: Ledger, entry: Reservation) -> Ledger:
    return ledger.lacking({entry.pod_uid: entry.token})
