"""The object store for bundles: the file of `--bundle-store`, and URLs signed for one object and a few minutes.

A worker must not hold a key that reaches the bundles of others: the controller alone has it.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from remediator.kube.manifests import yamlfile

_PATH = r"(?:/[A-Za-z0-9._~-]+)*/?"
_URL = re.compile(rf"https://[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?{_PATH}")
_LOOPBACK = re.compile(rf"http://(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{{1,5}})?{_PATH}")
_WORD = re.compile("[!-~]{1,256}")
URL_FORM = "https://HOST/BUCKET or https://HOST/BUCKET/PREFIX, such as https://s3.example.com/bundles"
SHOWN = "write the file as docs/operations.md shows, or correct it"


class WireStore(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """The file as written."""

    url: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"


@dataclass(frozen=True, slots=True)
class BundleStore:
    """A bucket, or a prefix in one, and the key that may write there."""

    url: str
    region: str
    access_key: str
    secret_key: str = field(repr=False)

    def put_url(self, name: str, now: datetime, lasts: timedelta) -> str:
        """A URL that lets whoever has it PUT this one object until it ends, and do nothing else."""
        from minio.credentials.credentials import Credentials
        from minio.signer import presign_v4

        signed = presign_v4(
            method="PUT",
            url=urlsplit(f"{self.url.rstrip('/')}/{name}"),
            region=self.region,
            credentials=Credentials(self.access_key, self.secret_key),
            date=now.astimezone(UTC),
            expires=int(lasts.total_seconds()),
        )
        return signed.geturl()


def load(path: Path) -> BundleStore:
    """Read the file. Raises ValueError that names file, field and remedy, and quotes no secret."""
    try:
        wire = msgspec.convert(yamlfile.one(path.read_text("utf-8")), WireStore)
    except (OSError, ValueError) as wrong:  # the errors of msgspec name a field and quote nothing
        why = wrong if isinstance(wrong, msgspec.ValidationError | OSError) else "it is no YAML"
        raise ValueError(f"--bundle-store {path}: {why}; {SHOWN}") from None
    if problem := _problem(wire):
        raise ValueError(f"--bundle-store {path}: {problem}")
    try:
        import minio.signer  # noqa: F401
    except ImportError as missing:
        raise ValueError(f"--bundle-store needs {missing.name}: pip install 'remediator[store]'") from None
    return BundleStore(wire.url, wire.region, wire.access_key, wire.secret_key)


def _problem(wire: WireStore) -> str:
    """What is wrong with a field; "" for nothing."""
    if not (_URL.fullmatch(wire.url) or _LOOPBACK.fullmatch(wire.url)):
        return f"url is not {URL_FORM}; http is for loopback only"
    if not re.fullmatch("[a-z0-9-]{1,64}", wire.region):
        return "region is not the name of a region, such as us-east-1; leave it out where the store has none"
    words = (("accessKey", wire.access_key), ("secretKey", wire.secret_key))
    return next((f"{name} is not one word of ASCII" for name, text in words if not _WORD.fullmatch(text)), "")
