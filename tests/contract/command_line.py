"""What docs/cli.md shows of the command line: every command with its options, as --help has them."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import typer

from remediator.cli.every import app

BAR = r"\|"  # one that ends no cell of a table


def drawings() -> dict[str, str]:
    """Every command, by its name."""
    group: Any = typer.main.get_command(app)
    return {"command line": "\n\n".join(section(name, command) for name, command in sorted(commands(group.commands)))}


def commands(of: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The commands that do something, with the words that call each."""
    for name, command in of.items():
        below = getattr(command, "commands", None)
        yield from commands(below, f"{name} ") if below else [(above + name, command)]


def section(name: str, command: Any) -> str:
    """One command: what it does, and what it takes."""
    rows = [row(param) for param in command.params if not param.hidden]
    head = ["| takes | default | means |", "|---|---|---|"]
    return "\n\n".join([f"## {name}", command.help.strip(), *(["\n".join([*head, *rows])] if rows else [])])


def row(param: Any) -> str:
    """One option or argument."""
    if param.param_type_name == "argument":
        names = f"`{param.metavar or param.name.upper().replace('_', '-')}`"
    else:
        names = ", ".join(f"`{option}`" for option in (*param.opts, *param.secondary_opts))
    cells = (names, "required" if param.required else default(param), " ".join((param.help or "").split()))
    return "|" + "|".join(f" {cell.replace('|', BAR)} " if cell else " " for cell in cells) + "|"


def default(param: Any) -> str:
    """What counts where it is left out; nothing where there is none, or where the help says it."""
    if isinstance(param.show_default, str):
        return param.show_default
    given = param.default.value if isinstance(param.default, Enum) else param.default
    if callable(given) or given is None or isinstance(given, bool) or given in ("", (), []):
        return ""
    return f"`{given}`"
