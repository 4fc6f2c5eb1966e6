"""What tests make go wrong: refusals, lost answers, silence, addresses of another host."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from remediator_sim.github.limits import PRIMARY, SECONDARY


@dataclass(frozen=True, slots=True)
class GithubFault:
    """What happens to a request. `carried_out`: it has its effect, only the answer is not the true one."""

    status: int = 0  # answer this; 0 with neither of the others: the true answer
    message: str = "Server Error"
    headers: Mapping[str, str] = field(default_factory=dict)
    carried_out: bool = False
    drop: bool = False  # break the connection instead of answering
    silent: bool = False  # never answer
    foreign: bool = False  # the answer's addresses name another host, as behind a proxy that does not rewrite them
    text: str = ""  # answer this instead of JSON, as a proxy's page

    @classmethod
    def secondary(cls, *, status: int = 403, retry_after: int | None = None) -> "GithubFault":
        """Too much in a short time; GitHub uses 403 and 429, with or without Retry-After."""
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        return cls(status, SECONDARY, headers)

    @classmethod
    def primary(cls, *, reset: int, status: int = 403) -> "GithubFault":
        """The quota is spent until `reset`, in unix seconds."""
        return cls(status, PRIMARY, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(reset)})


@dataclass(slots=True)
class _PlannedFault:
    method: str
    path: re.Pattern[str]
    fault: GithubFault
    times: int


@dataclass(slots=True)
class GithubFaults:
    """What is planned, in order."""

    _plans: list[_PlannedFault] = field(default_factory=list)

    def plan(self, method: str, path: str, fault: GithubFault, times: int) -> None:
        """The next `times` requests of that method whose path holds the regular expression meet the fault."""
        self._plans.append(_PlannedFault(method, re.compile(path), fault, times))

    def meet(self, method: str, path: str) -> GithubFault | None:
        """The fault of one request, which uses it up."""
        for plan in self._plans:
            if plan.times > 0 and plan.method == method and plan.path.search(path):
                plan.times -= 1
                return plan.fault
        return None

    def clear(self) -> None:
        """Forget what is planned."""
        self._plans.clear()
