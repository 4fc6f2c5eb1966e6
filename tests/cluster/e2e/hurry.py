"""The shipped policies, in a hurry."""

from typing import Any

VERIFY = {"settle": "1s", "fresh": "1s", "timeout": "60s"}


def hurried(document: dict[str, Any]) -> dict[str, Any]:
    """A policy that acts, and waits seconds where the shipped one waits minutes; anything else as it is."""
    if document["kind"] == "RemediationPolicy":
        document["spec"] |= {"mode": "Enforce", "verify": VERIFY, "cooldown": "0s"}
        for clause in document["spec"]["when"]:
            clause["for"] = "0s"
    return document
