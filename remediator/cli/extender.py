"""`remediator extender`: the configuration of a kube-scheduler that asks extenders, written and checked."""

from pathlib import Path
from typing import Annotated

import typer

from remediator.cli.common import Namespace, amount, app, refusal
from remediator.cli.replay import replay
from remediator.core.kubernetes_version import Kubernetes
from remediator.scheduler.config import written
from remediator.scheduler.config.traps import Trap, traps
from remediator.scheduler.config.versions import kubernetes
from remediator.scheduler.packing.points import Score
from remediator.settings import ExtenderScore

extender = typer.Typer(help="Write and check the configuration of kube-scheduler.", no_args_is_help=True)
app.add_typer(extender, name="extender")
extender.command()(replay)
Scored = Annotated[ExtenderScore, typer.Option(help="The --extender-score of the controller.")]
K8s = Annotated[str, typer.Option("--k8s", help="The version of Kubernetes, such as 1.31.")]


@extender.command()
def config(
    k8s: K8s,
    url: Annotated[str, typer.Option(help="Where the extender is: the cluster IP of its Service.")] = written.URL,
    scheduler_name: Annotated[str, typer.Option(help="Of a second kube-scheduler. Left out: the cluster's own.")] = "",
    resources: Annotated[
        list[str] | None, typer.Option("--resource", help="Only Pods that ask for it are sent. May be given again.")
    ] = None,
    pack: Annotated[bool, typer.Option("--pack", help="Let a plugin of the scheduler pack GPUs, too.")] = False,
    score: Scored = "fgd",
    asks: Annotated[bool, typer.Option("--extender/--no-extender", help="Ask Remediator, or pack alone.")] = True,
    shares: Annotated[
        bool, typer.Option("--shared-gpus", help="Let Remediator bind Pods that ask for aliyun.com/gpu-mem, too.")
    ] = False,
    namespace: Namespace = written.NAMESPACE,
) -> None:
    """Write a KubeSchedulerConfiguration to stdout, with a comment that explains each value."""
    names = tuple(dict.fromkeys(resources or written.RESOURCES))
    try:
        wanted = written.Wanted(_version(k8s), url, scheduler_name, names, pack, asks, namespace, Score(score), shares)
        typer.echo(written.written(wanted), nl=False)
    except ValueError as wrong:
        raise refusal(wrong) from None


@extender.command()
def check(
    file: Annotated[Path, typer.Argument(help="A KubeSchedulerConfiguration, as kube-scheduler reads it by --config.")],
    k8s: Annotated[str, typer.Option("--k8s", help="The version of Kubernetes that is to read it.")] = "",
    score: Scored = "fgd",
) -> None:
    """Say what goes wrong with the extenders of a configuration. Exit 1 where anything does."""
    findings = _findings(file, _version(k8s) if k8s else None, Score(score))
    for finding in findings:
        typer.echo(f"{file}: {finding}")
    typer.echo(amount(len(findings), "finding"), err=True)
    raise typer.Exit(1 if findings else 0)


def _findings(file: Path, version: Kubernetes | None, score: Score) -> list[Trap]:
    """Exit 2 where the file is not one document of YAML."""
    from remediator.kube.manifests import lint

    try:
        documents, wrong = lint.read(str(file), file.read_text("utf-8"))
    except OSError as failed:
        raise refusal(f"{file}: {failed.strerror}; name a file that can be read") from None
    except UnicodeDecodeError:
        raise refusal(f"{file}: is not text in UTF-8; name a file of YAML or JSON") from None
    if wrong or len(documents) != 1:
        why = str(wrong[0]) if wrong else f"{file}: {len(documents)} documents"
        raise refusal(f"{why}; name a file with one KubeSchedulerConfiguration")
    return traps(documents[0][1], version, score)


def _version(text: str) -> Kubernetes:
    try:
        return kubernetes(text)
    except ValueError as wrong:
        raise refusal(f"--k8s: {wrong}") from None
