"""What an operator may set, in one place. Printed whole at the start."""

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

from remediator.core.breaker import Breaker


def identity() -> str:
    """Who we are in the Lease: the Pod's name in a cluster, host and process elsewhere."""
    return os.environ.get("POD_NAME") or f"{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds."""

    identity: str = field(default_factory=identity)
    breaker: Breaker = field(default_factory=Breaker)
    drains: int = 50
    workers: int = 16
    lease_duration: float = 15.0
    lease_renew: float = 10.0
    lease_retry: float = 2.0
    listen: str = "127.0.0.1:8080"
    routes: Path | None = None
    github_url: str = "https://api.github.com"
    github_token_file: Path | None = None
    github_spacing: float = 1.0
    webhook_token_file: Path | None = None
