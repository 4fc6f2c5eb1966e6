"""The authority of our endpoints, written where the API server looks for it before it asks us about an eviction.

Who leads looks again and again: somebody may have applied the configuration anew, or had new certificates made. It
writes nothing else there, and makes no configuration: where there is none, nobody is asked about evictions.
"""

import structlog

from remediator.core import names
from remediator.kube.api.builtin import SECRET
from remediator.kube.api.webhook_configuration import WEBHOOKS, new_authority, trusts_nobody
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import STRATEGIC_PATCH

log = structlog.get_logger()
SOON, AGAIN = 2.0, 60.0  # seconds until the next look: while there is no certificate, and otherwise
KEY = "authority"
OWN_CERTIFICATES = "with --tls-cert-file nobody writes caBundle of the webhook for evictions: no drain can evict"
REMEDY = "put the authority of your certificate there, or leave deploy/evictions out (evictionWebhook.enabled: false)"


class EvictionWebhook:
    """One look every minute; with certificates of a user one when we begin to lead."""

    def __init__(self, client: Client, namespace: str, makes_certificates: bool = True) -> None:
        self._client, self._namespace, self._failure = client, namespace, ""
        self._makes_certificates = makes_certificates
        name = "eviction-webhook" if makes_certificates else "eviction-webhook-warning"
        self.queue: LeaderQueue[str] = LeaderQueue(name, self._pass, lambda: [KEY], workers=1, essential=False)

    async def _pass(self, _: str) -> float | None:
        wait: float | None = None
        failure = ""
        try:
            if self._makes_certificates:
                wait = await self.look()
            else:
                await self.warn()
        except errors.ApiError as error:
            wait, failure = error.retry_after or AGAIN, str(error)
        if failure and failure != self._failure:
            log.warning("the API server may not know us when a drain evicts", error=failure)
        self._failure = failure
        return wait

    async def look(self) -> float:
        """Write the authority where another one stands; seconds until the next look. Raises ApiError."""
        authority = await self._authority()
        if not authority:
            return SOON
        try:
            configuration = await self._client.get(WEBHOOKS, names.EVICTIONS)
        except errors.NotFound:
            return AGAIN
        if body := new_authority(configuration, authority):
            await self._client.patch(WEBHOOKS, names.EVICTIONS, body, content_type=STRATEGIC_PATCH)
            log.info("the API server knows us by a new authority when a drain evicts", webhook=names.EVICTIONS)
        return AGAIN

    async def warn(self) -> None:
        """Say once that nobody writes the authority of certificates that are a user's own. Raises ApiError."""
        try:
            configuration = await self._client.get(WEBHOOKS, names.EVICTIONS)
        except errors.NotFound:
            return
        if trusts_nobody(configuration):
            log.warning(OWN_CERTIFICATES, webhook=names.EVICTIONS, remedy=REMEDY)

    async def _authority(self) -> bytes:
        """What our certificates are signed by; b"" while there are none."""
        try:
            secret = await self._client.get(SECRET, names.SERVING_SECRET, namespace=self._namespace)
        except errors.NotFound:
            return b""
        return secret.data.get("ca.crt", b"")
