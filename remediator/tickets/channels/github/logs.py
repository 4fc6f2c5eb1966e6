"""What PyGithub logs, as a line of ours: by itself it writes to stderr past everything that is set for logs."""

import logging

import structlog

log = structlog.get_logger(__name__)


class _Relay(logging.Handler):
    """Hands each record on at its level."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(record.levelno, record.getMessage(), logger=record.name)


def relay() -> None:
    """Take the place of the handler that PyGithub sets when it is imported."""
    logger = logging.getLogger("github")
    logger.handlers, logger.propagate = [_Relay()], False
    logger.setLevel(logging.INFO)  # at debug it logs whole answers, and so the tokens of an App
