"""`remediator ticket`: what issues look like, without a cluster and without a tracker."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from remediator.cli.common import app, err, refusal

if TYPE_CHECKING:
    from remediator.tickets.channels.routes import Routes
    from remediator.tickets.render.preview import Objects
    from remediator.tickets.render.template import TextTemplate

ticket = typer.Typer(help="See what the issues of tickets look like.", no_args_is_help=True)
app.add_typer(ticket, name="ticket")
KINDS = "Ticket, NodeRemediation, RemediationPolicy, Node or TicketRoute"


@ticket.callback()
def _commands() -> None:
    """See what the issues of tickets look like."""


@ticket.command()
def render(
    file: Annotated[
        Path, typer.Argument(help=f"YAML or JSON with objects of kind {KINDS}, as kubectl gets them; - is stdin.")
    ],
    routes: Annotated[
        Path | None, typer.Option(help="The routes file: its links, and the template of the route.")
    ] = None,
    template: Annotated[Path | None, typer.Option(help="A template to try, in place of that of the route.")] = None,
) -> None:
    """Print the issue of each Ticket and each case, as if its policy had a ticket for each case.

    Exit 1 where the template gives no text, or a TicketRoute may not be used.
    """
    from remediator.clock import SYSTEM
    from remediator.tickets.render.preview import preview

    held, tried = objects(file), _template(template)
    where, unused = _with_objects(_routes(routes), held)
    shown = preview(held, where, tried, SYSTEM.now())
    if not shown:
        raise refusal(f"no Ticket and no NodeRemediation in {file}; get one with kubectl get noderemediation -o yaml")
    typer.echo("\n\n".join(f"{issue.title}\n\n{issue.text}" for issue in shown))
    problems = dict.fromkeys([*unused, *(issue.problem for issue in shown if issue.problem)])
    for problem in problems:
        err.print(f"remediator: {problem}")
    raise typer.Exit(1 if problems else 0)


def objects(file: Path) -> "Objects":
    """What a file holds; one sentence and exit 2 for what no issue is made of."""
    from remediator.kube import api
    from remediator.kube.api import builtin, decode
    from remediator.kube.manifests import lint
    from remediator.tickets.render.preview import Objects

    documents, findings = lint.read(str(file), _text(file))
    if findings:
        raise refusal(f"{findings[0]}; correct that")
    kinds = {kind.name: kind.type for kind in (api.TICKET, api.CASE, api.POLICY, builtin.NODE, api.TICKET_ROUTE)}
    of: dict[str, list[Any]] = {name: [] for name in kinds}
    for place, document in documents:
        name = str(document.get("kind"))
        if name not in kinds:
            raise refusal(f"{place}: kind is {name}; give objects of kind {KINDS}")
        try:
            of[name].append(msgspec.convert(document, kinds[name]))
        except msgspec.ValidationError as error:
            raise refusal(f"{place}: {name}: {error}; correct that field") from None
    policies = [decode.remediation_policy(wire) for wire in of["RemediationPolicy"]]
    nodes = [decode.node(wire) for wire in of["Node"]]
    return Objects(
        [decode.ticket(wire) for wire in of["Ticket"]],
        [decode.remediation_case(wire) for wire in of["NodeRemediation"]],
        {policy.name: policy for policy in policies},
        {node.name: node for node in nodes},
        [decode.ticket_route(wire) for wire in of["TicketRoute"]],
    )


def _text(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    except OSError as failed:
        raise refusal(f"{file}: {failed.strerror}; name a file that can be read, or - for stdin") from None
    except UnicodeDecodeError:
        raise refusal(f"{file}: is not text in UTF-8; name a file of YAML or JSON") from None


def _routes(file: Path | None) -> "Routes | None":
    from remediator.tickets.channels.github.limits import problem
    from remediator.tickets.channels.routes_file import load

    try:
        return load(file, problem) if file else None
    except ValueError as wrong:
        raise refusal(wrong) from None


def _with_objects(routes: "Routes | None", held: "Objects") -> "tuple[Routes | None, list[str]]":
    """The routes with the TicketRoutes of the file, and why some of them are not used."""
    from remediator.tickets.channels.team_routes import judged

    if not held.routes:
        return routes, []
    if routes is None:
        raise refusal("a TicketRoute is only used within the routes file: name that with --routes")
    judgement = judged(routes, held.routes)
    unused = [
        f"TicketRoute {key}: {verdict.message}" for key, verdict in judgement.verdicts.items() if not verdict.ready
    ]
    return replace(routes, rows=judgement.rows), unused


def _template(file: Path | None) -> "TextTemplate | None":
    from remediator.tickets.channels.routes_file import read_template

    return read_template(file) if file else None
