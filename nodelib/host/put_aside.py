"""Services of the node that hold its GPUs, put aside while something is done to these, and started again after it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nodelib.contract.operation import Failed, Refused
from nodelib.host.commands import run
from nodelib.host.units import change, why

SECONDS, TIMER_SECONDS = 120.0, 10.0
NET_SECONDS = 1800  # longer than any operation may take


@contextmanager
def put_aside(names: Sequence[str]) -> Iterator[None]:
    """While open, none of these services runs; all of them ran before.

    systemd itself is told to start each one later: also where this program is killed meanwhile, none stays down. Raises
    Refused when one does not stop, Failed when one does not start.
    """
    for index, name in enumerate(names):
        run(later(name), TIMER_SECONDS)  # without it the service is as safe as this program is
        result = run(change("stop", name), SECONDS)
        if result.code != 0:
            list(_start(names[: index + 1]))
            raise Refused(f"{name} does not stop ({why(result, SECONDS)}), nothing was reset: reboot the node")
    try:
        yield
    finally:
        troubles = list(_start(names))
        if troubles:
            raise Failed(f"after the reset {'; '.join(troubles)}: reboot the node")


def before(name: str) -> list[tuple[str, ...]]:
    """The commands that put a service aside."""
    return [later(name), change("stop", name)]


def after(name: str) -> list[tuple[str, ...]]:
    """The commands that start it again."""
    return [change("start", name), forget(name)]


def later(name: str) -> tuple[str, ...]:
    """The command that lets systemd start a service later; a service that runs by then is left as it is."""
    return ("systemd-run", f"--unit=remediator-start-{name}", f"--on-active={NET_SECONDS}", *change("start", name))


def forget(name: str) -> tuple[str, ...]:
    """The command that takes this back."""
    return ("systemctl", "stop", f"remediator-start-{name}.timer")


def _start(names: Sequence[str]) -> Iterator[str]:
    """Start all, the last first; yield what does not, in words: systemd is to try it again later."""
    for name in reversed(names):
        result = run(change("start", name), SECONDS)
        if result.code != 0:
            yield f"{name} does not start ({why(result, SECONDS)})"
        else:
            run(forget(name), TIMER_SECONDS)
