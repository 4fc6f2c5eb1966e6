"""`remediator defaults`: the shipped policies, budgets and templates, where no user has edited them."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from remediator.cli.common import OUR_NAMESPACE, Ended, ExitCode, Kubeconfig, Namespace, app, asking, out, refusal

if TYPE_CHECKING:
    from remediator.core.shipped import Shipped


@app.command()
def defaults(
    folder: Annotated[Path, typer.Argument(help="Folder with the shipped objects.", exists=True, file_okay=False)],
    restore: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND/NAME", help="Make this one as shipped, though it was edited or deleted."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = OUR_NAMESPACE,
) -> None:
    """Create and update the shipped policies, budgets and templates. What a user has edited or deleted stays so.

    Ends with 4 where the API server refused some; the others are done.
    """
    objects = _read(folder)
    keys = {each.key for each in objects}
    for name in restore or ():
        if name not in keys:
            raise refusal(f"--restore {name}: nothing of this name is shipped; write KIND/NAME, such as {min(keys)}")
    asyncio.run(_defaults(objects, restore or [], kubeconfig, namespace))


def _read(folder: Path) -> "list[Shipped]":
    from remediator.kube.manifests import defaults

    objects: list[Shipped] = []
    file = folder
    try:
        for file in sorted(folder.glob("*.yaml")):
            objects += defaults.read(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, defaults.NotShipped) as wrong:
        raise refusal(f"{file}: {wrong}") from None
    if not objects:
        raise refusal(f"no .yaml file in {folder}; name the folder with the shipped objects")
    return objects


async def _defaults(objects: "list[Shipped]", restore: list[str], kubeconfig: Path | None, namespace: str) -> None:
    from remediator.core.shipped import Step
    from remediator.kube.manifests.defaults import bring_up_to_date

    async with asking(
        kubeconfig,
        forbidden="the role remediator-defaults of the Helm chart may do this, and it is there during an upgrade",
    ) as client:
        judgements = await bring_up_to_date(client, namespace, objects, restore)
    same = [each for each in judgements if each.step is Step.NOTHING]
    for judgement in judgements:
        for line in judgement.lines if judgement.step is not Step.NOTHING else ():
            out.print(line)
    out.print(f"{len(same)} of {len(judgements)} were as shipped already")
    refused = [each.shipped.key for each in judgements if each.step is Step.REFUSED]
    if refused:
        why = f"{len(refused)} of {len(judgements)} refused: {', '.join(refused)}; what helps stands under each above"
        raise Ended(ExitCode.FAILED, f"{why}, and the others are done")
