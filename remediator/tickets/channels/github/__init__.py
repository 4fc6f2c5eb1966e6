"""The channel to GitHub: github.com, GitHub Enterprise Cloud and Server, over REST."""

from remediator.tickets.channels.github.channel import GitHub
from remediator.tickets.channels.github.credentials import AppKeyFile, Credentials, GithubTokenFile

__all__ = ["AppKeyFile", "Credentials", "GitHub", "GithubTokenFile"]
