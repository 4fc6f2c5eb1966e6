"""Whether an answer is one of GitHub's: PyGithub takes a redirect for an answer, and any proxy's page."""

from typing import Any

from remediator.tickets.channels.github.errors import Redirected


def checked(answer: Any, field: str) -> Any:
    """An answer that must hold a field. Raises Redirected, or ValueError where it is not GitHub's."""
    if not isinstance(answer, dict) or field not in answer:
        raise Redirected if isinstance(answer, dict) and "message" in answer else ValueError("no answer of GitHub's")
    return answer


def listed(answer: Any) -> list[Any]:
    """An answer that must be a list. Raises as `checked` does."""
    if not isinstance(answer, list):
        raise Redirected if isinstance(answer, dict) and "message" in answer else ValueError("no answer of GitHub's")
    return answer
