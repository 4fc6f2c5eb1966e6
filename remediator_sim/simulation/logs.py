"""What the product logs as an error, told to the simulation that runs now."""

import logging
import random
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

# level, text, whether it tells of an exception that nobody expected
Heard = Callable[[str, str, bool], None]


def listen(heard: Heard) -> None:
    """Give errors to `heard`, and drop what is less."""

    def hear(_: Any, level: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        failed = bool(event.pop("exc_info", None))
        words = " ".join(f"{key}={value}" for key, value in sorted(event.items()) if key != "event")
        heard(level, f"{event['event']} {words}", failed)
        raise structlog.DropEvent

    structlog.configure(
        processors=[hear],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )


@contextmanager
def kept_settings() -> Iterator[None]:
    """What a simulation sets for the whole process, its logs and its chance, is as before when it is over."""
    before, state = structlog.get_config(), random.getstate()
    try:
        yield
    finally:
        structlog.configure(**before)
        random.setstate(state)
