"""All commands at once: for the help, completion, and whoever describes them."""

from remediator.cli import (  # noqa: F401 - each adds its commands
    client_certificate,
    close_breaker,
    convert,
    crds,
    defaults,
    demo,
    explain,
    extender,
    gpus,
    history,
    inventory,
    janitor,
    keep,
    lint,
    operate,
    orders,
    placing,
    replay,
    retire,
    rma,
    run,
    status,
    ticket,
    uninstall,
)
from remediator.cli.common import app

__all__ = ["app"]
