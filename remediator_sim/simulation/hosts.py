"""What a world asks of the host of a replica, be it a model or a process."""

from typing import Any, Protocol

from remediator_sim.simulation.clock import HostClock
from remediator_sim.simulation.line import Line
from remediator_sim.simulation.wire import Wire


class ReplicaHost(Protocol):
    """One host for a replica. `wire` and `line` lead to the API server and to GitHub, None where nothing can be planned
    for what goes over them.
    """

    @property
    def clock(self) -> HostClock:
        """Its clock."""

    @property
    def wire(self) -> Wire | None:
        """How the process that runs reaches the API server."""

    @property
    def line(self) -> Line | None:
        """How it reaches GitHub."""

    @property
    def is_leader(self) -> bool:
        """Whether it leads now."""

    @property
    def acts(self) -> bool:
        """Whether it leads, runs and reaches the server."""

    @property
    def frozen(self) -> bool:
        """Whether its process has had SIGSTOP."""

    def start(self) -> None:
        """Start a process, unless one runs."""

    def crash(self) -> None:
        """Kill the process."""

    def crash_at(self, turn: int) -> None:
        """Kill the process just before this turn of it, counted from now on."""

    def freeze(self) -> None:
        """SIGSTOP."""

    def thaw(self) -> None:
        """SIGCONT."""

    def stretch(self, factor: float) -> bool:
        """Make the intervals of the lease so many times the shipped ones, where they can be set; whether they are."""

    async def filter(self, nodes: list[str]) -> dict[str, Any] | None:
        """What its extender says of these nodes; None where it does not answer, or has not seen everything lately."""

    async def post(self, body: bytes) -> int | None:
        """What the webhook answers to one post, None where nobody does in time."""
