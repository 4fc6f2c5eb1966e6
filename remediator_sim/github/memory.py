"""GitHub itself, without a listener: what tests, demonstrations and simulations may do and ask."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, unquote, urlsplit

from remediator.clock import SYSTEM, Clock
from remediator_sim.github.bodies import Bodies
from remediator_sim.github.dispatch import GithubDispatcher, Reply, parse
from remediator_sim.github.faults import GithubFault
from remediator_sim.github.handlers import GitHubState
from remediator_sim.github.limits import TokenLimits
from remediator_sim.github.person import Person
from remediator_sim.github.projects import Project
from remediator_sim.github.request import GithubRequest, Logged
from remediator_sim.github.store import Access, GithubStore, Issue, Repository
from remediator_sim.github.tokens import APP, INSTALLATION, Tokens

PREFIX = "/api/v3"  # as GitHub Enterprise Server has it, so that pages for people fit beside it


class MemoryGitHub:
    """GitHub in memory: `serve` answers one request.

    Args:
        repositories: names, owner/name.
        users: logins that may be assigned.
        bot: the login behind the token.
        clock: its wall time; `advance` moves it on.
        web_url: its address, where nobody listens.
        api_url: the address of its API where it is github.com, which has boards in REST, too; else it is an Enterprise
            Server, whose API stands at /api/v3.
        described: whether requests and answers are held against GitHub's own description. What it forbids in a request
            gets GitHub's 422 and stands in `violations`; an answer that it forbids stands in `broken`.
    """

    def __init__(
        self,
        repositories: Iterable[str],
        users: Iterable[str] = (),
        *,
        bot: str = "remediator[bot]",
        clock: Clock = SYSTEM,
        web_url: str = "http://github.test",
        api_url: str = "",
        described: bool = True,
    ) -> None:
        self._clock, self._ahead, self._described = clock, timedelta(), described
        self._store = GithubStore(bot, list(users))
        self._started, self._api_url = self.now(), api_url
        for name in repositories:
            self._store.add(name, self._started)
        self._stand_at(web_url)

    def _stand_at(self, web_url: str) -> None:
        """Give everything its address."""
        self.web_url, self.url = web_url, self._api_url or web_url + PREFIX
        bodies = Bodies(self._store, self.url, self.web_url)
        self._github = GitHubState(self._store, bodies, Tokens(), api=self.url, enterprise=not self._api_url)
        self._dispatcher = GithubDispatcher(self._github, self.web_url, described=self._described)

    def serve(self, method: str, url: str, headers: Mapping[str, str], raw: bytes) -> Reply:
        """The reply to one request; `url` is its path with its query, as sent."""
        parts = urlsplit(url)
        path, query = unquote(parts.path).removeprefix(PREFIX), dict(parse_qsl(parts.query, keep_blank_values=True))
        lower = {name.lower(): value for name, value in headers.items()}
        return self._dispatcher.serve(GithubRequest(method, path, query, lower, raw, parse(raw), self.now()))

    # What a client needs

    @property
    def token(self) -> str:
        """The token that is taken now."""
        return self._github.tokens.current

    def rotate_token(self) -> str:
        """Make another token, and refuse the one before."""
        return self._github.tokens.rotate()

    @property
    def app(self) -> tuple[int, int, str]:
        """A GitHub App: its id, its installation's id, its private key (PEM)."""
        return APP, INSTALLATION, self._github.tokens.private_key

    # What may be looked at

    def issues(self, repository: str) -> list[Issue]:
        """All issues that are not deleted, by number, as they are now; lags do not apply."""
        return self.repository(repository).as_of(datetime.max.replace(tzinfo=UTC))

    @property
    def requests(self) -> list[Logged]:
        """Every request to the API, in order of arrival."""
        return self._dispatcher.log

    @property
    def violations(self) -> list[str]:
        """Requests that GitHub's description forbids."""
        return self._dispatcher.violations

    @property
    def broken(self) -> list[str]:
        """Answers of this fake that GitHub's description forbids; there should be none."""
        return self._dispatcher.broken

    # What may be made to happen

    def person(self, login: str) -> Person:
        """Somebody at the web pages."""
        return Person(login, self._store, self.now)

    def add(self, name: str) -> None:
        """One more repository, empty."""
        self._store.add(name, self.now())

    def project(self, owner: str, number: int, field: str, *options: str) -> Project:
        """A new board of an organization, empty."""
        made = self._github.projects[owner, number] = Project(f"PVT_{number}", field, list(options))
        return made

    def repository(self, name: str) -> Repository:
        """A repository, whose `access`, `has_issues`, `archived` and `private` may be changed."""
        return self._store.repositories[name]

    def restrict(self, repository: str, access: Access) -> None:
        """Change what the token may do there."""
        self.repository(repository).access = access

    @property
    def limits(self) -> TokenLimits:
        """The rate limits, whose numbers may be changed."""
        return self._github.limits

    def lag(self, *, search: float | None = None, listing: float | None = None, gives_up: bool = False) -> None:
        """Let search or lists show what was so many seconds ago; `gives_up`: search says that it did not finish."""
        self._github.search_gives_up = gives_up
        self._github.search_lag = self._github.search_lag if search is None else search
        self._github.list_lag = self._github.list_lag if listing is None else listing

    def advance(self, seconds: float) -> None:
        """Move GitHub's clock on."""
        self._ahead += timedelta(seconds=seconds)

    def now(self) -> datetime:
        """GitHub's time."""
        return self._clock.wall() + self._ahead

    def fail(self, method: str, path: str, fault: GithubFault, times: int = 1) -> None:
        """Let the next `times` requests of that method, whose path holds the regular expression, meet the fault."""
        self._dispatcher.faults.plan(method, path, fault, times)

    def heal(self) -> None:
        """Forget planned faults."""
        self._dispatcher.faults.clear()
