"""How a scheduler asks an extender: two POSTs, and none of its troubles is ours (`ignorable: true`)."""

import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from remediator_sim.kubelet.binder import Advice
from remediator_sim.plain import Object

TIMEOUT = aiohttp.ClientTimeout(total=2.0)


class HttpExtender:
    """The extender at `url`, for a scheduler with nodeCacheCapable: names only, both ways.

    `tls` is what the scheduler trusts and shows, where `url` is https. `asked` and `failed` count its
    answers and its silences.
    """

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.url, self.asked, self.failed = url.rstrip("/"), 0, 0
        self._tls = tls or True

    async def __call__(self, pod: Object, names: Sequence[str]) -> Advice:
        """What it says of these nodes; no opinion where it does not answer."""
        try:
            kept = await self.filter(pod, names)
            scores = await self._post("prioritize", {"Pod": pod, "Nodes": None, "NodeNames": kept["NodeNames"]})
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError):
            self.failed += 1
            return Advice()
        self.asked += 1
        refused = {**(kept.get("FailedNodes") or {}), **(kept.get("FailedAndUnresolvableNodes") or {})}
        return Advice(refused, {score["Host"]: score["Score"] for score in scores})

    async def filter(self, pod: Object, names: Sequence[str]) -> dict[str, Any]:
        """Its answer to a filter call. Raises ValueError where it reports an error."""
        answer = await self._post("filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})
        if not isinstance(answer, Mapping) or answer.get("Error"):
            raise ValueError(f"the extender says: {answer}")
        return dict(answer)

    async def _post(self, verb: str, body: dict[str, Any]) -> Any:
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:  # noqa: SIM117
            async with session.post(f"{self.url}/{verb}", json=body, ssl=self._tls) as reply:
                reply.raise_for_status()
                return await reply.json(content_type=None)
