"""Versions of Kubernetes: how one is read, and with which the controller works."""

import re
from typing import NamedTuple


class Kubernetes(NamedTuple):
    """A version, without its patch."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


# ValidatingAdmissionPolicy v1, and the node's name in tokens of service accounts: what holds our rights
OLDEST = Kubernetes(1, 30)
_FORM = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,3})(\.[0-9]+)?([-+].*)?")


def version_of(text: str) -> Kubernetes | None:
    """A version as a server or a person writes it; None for what is none.

    >>> [str(version_of(text)) for text in ("1.31", "v1.34.1+rke2r1", "v1.30.5-gke.1443001", "main", "1")]
    ['1.31', '1.34', '1.30', 'None', 'None']
    """
    match = _FORM.fullmatch(text)
    return Kubernetes(int(match[1]), int(match[2])) if match else None


def too_old(version: str) -> str:
    """Return why an API server of this version will not do, "" where it will, or where its version cannot be read.

    >>> too_old("v1.29.4")
    'the API server is Kubernetes v1.29.4, and 1.30 or newer is needed: upgrade the control plane first'
    >>> too_old("v1.34.1+rke2r1"), too_old("main")
    ('', '')
    """
    number = version_of(version)
    if number is None or number >= OLDEST:
        return ""
    return (
        f"the API server is Kubernetes {version[:64]}, and {OLDEST} or newer is needed: upgrade the control plane first"
    )
