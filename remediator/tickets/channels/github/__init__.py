"""The tracker that is GitHub: github.com, GitHub Enterprise Cloud and Server, over REST."""

from remediator.tickets.channels.github.client import GitHub
from remediator.tickets.channels.github.credentials import App, TokenFile

__all__ = ["App", "GitHub", "TokenFile"]
