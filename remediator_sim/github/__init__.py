"""A GitHub in this process: its REST API for issues, kept to GitHub's own description, with faults on demand."""

from remediator_sim.github.fake import FakeGitHub
from remediator_sim.github.faults import GithubFault
from remediator_sim.github.memory import MemoryGitHub
from remediator_sim.github.store import Access, Comment, Issue, TimelineEvent

__all__ = ["Access", "Comment", "FakeGitHub", "GithubFault", "Issue", "MemoryGitHub", "TimelineEvent"]
