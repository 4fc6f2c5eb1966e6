"""What stands at the fake GitHub, as a person sees it."""

from remediator_sim.github import FakeGitHub
from remediator_sim.invariants.tickets import SeenIssue

MANY = "many nodes"


def issues(github: FakeGitHub, repository: str) -> list[SeenIssue]:
    """The issues of one repository, for an Observer.

    Titles begin with what they are about, `gpu-17: GpuLost`; of one about many nodes the whole title counts.
    """
    listed = github.issues(repository)
    return [SeenIssue(repository, issue.number, issue.open, _subject(issue.title)) for issue in listed]


def _subject(title: str) -> str:
    return title if MANY in title else title.partition(": ")[0]
