"""`remediator client-certificate`: what kube-scheduler or Alertmanager shows when it calls."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from remediator.cli.common import Kubeconfig, Namespace, app, asking, out, refusal
from remediator.clock import SYSTEM
from remediator.core import names


@app.command()
def client_certificate(
    caller: Annotated[Literal["kube-scheduler", "alertmanager"], typer.Argument(help="Who calls.")],
    output: Annotated[Path, typer.Option(file_okay=False, help="Folder for ca.crt, tls.crt and tls.key.")],
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long it is good for.")] = 365,
) -> None:
    """Write a client certificate, signed by the authority that the controller keeps in its Secret. Changes nothing."""
    shown = asyncio.run(_made(kubeconfig, namespace, caller, timedelta(days=days)))
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, text in shown.items():
            _write(output / name, text)
            out.print(f"wrote {output / name}")
    except OSError as error:
        raise refusal(f"--output {output}: {error.strerror}; name a folder that may be written") from None


def _write(file: Path, text: bytes) -> None:
    """Readable to its owner alone, also where the file was there before."""
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_bytes(text)


async def _made(kubeconfig: Path | None, namespace: str, caller: str, life: timedelta) -> dict[str, bytes]:
    from remediator.kube.api.builtin import SECRET
    from remediator.web import certificates

    what = f"Secret {namespace}/{names.SERVING_SECRET}"
    async with asking(kubeconfig, what, "apply deploy/endpoints.yaml, and name the controller's namespace") as client:
        secret = await client.get(SECRET, names.SERVING_SECRET, namespace=namespace)
    try:
        return certificates.for_caller(secret.data, caller, life, SYSTEM.wall())
    except (KeyError, ValueError, TypeError):
        remedy = "the controller fills it when it serves the extender or the webhook with a certificate of its own"
        raise refusal(f"{what} holds no authority; {remedy}") from None
