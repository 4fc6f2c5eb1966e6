"""The one webhook that we ask the API server to call, as far as we write it: by whose authority it knows us."""

from remediator.core import names
from remediator.kube.api.common import Base, ObjectMeta
from remediator.kube.wire.client import Kind


class WebhookClient(Base, frozen=True, kw_only=True):
    """Whose certificates the API server takes for ours."""

    ca_bundle: bytes = b""


class Webhook(Base, frozen=True, kw_only=True):
    """One webhook of a configuration."""

    name: str
    client_config: WebhookClient = WebhookClient()


class WebhookConfiguration(Base, frozen=True, kw_only=True):
    """A ValidatingWebhookConfiguration."""

    metadata: ObjectMeta
    webhooks: tuple[Webhook, ...] = ()


class AuthorityPatch(Base, frozen=True, kw_only=True):
    """A strategic merge: of the webhook of this name, the authority."""

    webhooks: tuple[Webhook, ...]


KIND = "ValidatingWebhookConfiguration"
WEBHOOKS: Kind[WebhookConfiguration] = Kind(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", KIND, WebhookConfiguration
)


def trusts_nobody(configuration: WebhookConfiguration) -> bool:
    """Whether the webhook is there and knows no authority, so that hardly any certificate fits."""
    ours = (each for each in configuration.webhooks if each.name == names.EVICTION_WEBHOOK)
    return any(not each.client_config.ca_bundle for each in ours)


def new_authority(configuration: WebhookConfiguration, authority: bytes) -> AuthorityPatch | None:
    """What makes the webhook trust this authority; None where it does, or is not there, or there is none to trust."""
    ours = next((each for each in configuration.webhooks if each.name == names.EVICTION_WEBHOOK), None)
    if ours is None or not authority or ours.client_config.ca_bundle == authority:
        return None
    return AuthorityPatch(webhooks=(Webhook(name=ours.name, client_config=WebhookClient(ca_bundle=authority)),))
