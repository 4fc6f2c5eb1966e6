"""What an administrator may set for the janitor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from remediator.core.idle_policy import JanitorMode
from remediator.janitor.directory import Directory
from remediator.janitor.selection import Selection
from remediator.live_file import LiveFile, Unchanging

if TYPE_CHECKING:
    from remediator.janitor.rules import JanitorRule

MOST_DELETIONS = 100
INTERVAL = 120.0  # seconds; what a list of 50,000 Pods costs stays below a hundredth of a core
Hook = Callable[[Any, dict[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Terms:
    """What an administrator sets: how long before a deletion its owner is told (0: not), and which annotation says when
    an object was last deployed ("": none).
    """

    notice: timedelta = timedelta()
    deployment_time: str = ""


@dataclass(frozen=True, slots=True)
class JanitorSettings:
    """Times in seconds. `most`: deletions in one pass, and as many notices; `pause`: after each deletion."""

    mode: JanitorMode = JanitorMode.DRY_RUN
    rules: "tuple[JanitorRule, ...]" = ()
    selection: Selection = field(default_factory=Selection)
    terms: Terms = field(default_factory=Terms)
    most: int = MOST_DELETIONS
    pause: float = 0.0
    interval: float = INTERVAL
    hook: Hook | None = None
    directory: Unchanging[Directory] | LiveFile[Directory] = field(default_factory=lambda: Unchanging(Directory()))
