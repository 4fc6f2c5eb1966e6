"""`remediator demo`: the simulator's demo, loaded by name."""

import importlib
import importlib.util

import typer

from remediator.cli.common import app, refusal

SIMULATOR = "remediator_sim"  # a distribution of its own, which the product never imports


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def demo(context: typer.Context) -> None:
    """Break nodes of a simulated fleet and repair them, on this machine. `remediator demo --help` lists the options."""
    if importlib.util.find_spec(SIMULATOR) is None:
        raise refusal("the simulator is not installed: pip install 'remediator[sim]'")
    raise typer.Exit(importlib.import_module(f"{SIMULATOR}.scenarios.__main__").main(context.args))
