"""A file while it changes: read again without a restart, and kept as it was where what is written is wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from prometheus_client import Gauge

T = TypeVar("T")
LOOK_EVERY = timedelta(seconds=10)
Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Unchanging(Generic[T]):
    """The same of what no file may change."""

    newest: T
    outdated: str = ""

    def current(self, now: datetime) -> T:
        """It."""
        return self.newest


class LiveFile(Generic[T]):
    """What a file says. `newest`: as it was read last without a mistake; `outdated`: why the file as it is now is not
    used, "" where it is.

    Args:
        load: reads the file; raises ValueError that names file, field and remedy.
        noun: what it holds, such as routes.
        gauge: is 1 while it is outdated.
        watched: what is looked at; a folder where others of its files count, too.
    """

    def __init__(
        self, path: Path, load: Callable[[Path], T], noun: str, gauge: "Gauge", watched: Path | None = None
    ) -> None:
        """Raises ValueError as `load` does: nothing begins with a file that is wrong."""
        self._path, self._load, self._noun, self._gauge = path, load, noun, gauge
        self._watched = watched or path
        self._signature = signature(self._watched)
        self.newest = load(path)
        self.outdated = ""
        self._look: datetime | None = None

    def current(self, now: datetime) -> T:
        """As it was written last without a mistake; looks at the file every ten seconds."""
        self.refresh(now)
        return self.newest

    def refresh(self, now: datetime) -> bool:
        """Whether something was written since the last look, right or wrong."""
        if self._look is not None and timedelta(0) <= now - self._look < LOOK_EVERY:
            return False
        self._look = now
        seen = signature(self._watched)
        if seen == self._signature:
            return False
        self._signature = seen
        self._read()
        self._gauge.set(bool(self.outdated))
        return True

    def _read(self) -> None:
        from structlog import get_logger  # every command imports this module for its options, and few write a log

        log = get_logger()
        try:
            self.newest, self.outdated = self._load(self._path), ""
        except ValueError as error:
            self.outdated = f"{error}; until then the {self._noun} from before that change count"
            log.error(f"{self._noun} not read", message=self.outdated)
        else:
            log.info(f"{self._noun} read again", file=str(self._path))


def signature(watched: Path) -> Signature:
    """What tells whether a file has changed; a ConfigMap is changed by a link that leads elsewhere."""
    try:
        files = sorted(path for path in watched.iterdir() if path.is_file()) if watched.is_dir() else [watched]
        stats = [(path.name, path.stat()) for path in files]
    except OSError:
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats)
