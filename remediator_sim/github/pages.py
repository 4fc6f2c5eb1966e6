"""What a person sees in a browser: the issues of a repository, each with its timeline, and boards. No scripts."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jinja2
from aiohttp import web
from markdown_it import MarkdownIt
from markupsafe import Markup

from remediator_sim.github.projects import Project
from remediator_sim.github.store import GithubStore, Issue, TimelineEvent

_FOLD = re.compile(r"(</?details>|<summary>.*?</summary>)", re.IGNORECASE)
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)
_PATH = re.compile(r"/([^/]+/[^/]+)/(?:issues|pull)(?:/([0-9]+))?/?")
_BOARD = re.compile(r"/orgs/([^/]+)/projects/([0-9]+)/?")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class _Line(NamedTuple):
    """One line of the timeline: a comment when it has a text."""

    id: int
    actor: str
    at: str
    said: str
    text: Markup | None


class Pages:
    """Pages over one store, and the projects of organizations."""

    def __init__(self, store: GithubStore, projects: Mapping[tuple[str, int], Project] | None = None) -> None:
        self._store, self._projects = store, projects if projects is not None else {}
        self._markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
        loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
        self._templates = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)

    def serve(self, method: str, path: str) -> web.Response:
        """The page at a path, or 404."""
        match, board = _PATH.fullmatch(path), _BOARD.fullmatch(path)
        if path == "/":
            return self._home(200)
        if method == "GET" and board is not None and (board[1], int(board[2])) in self._projects:
            return self._board(board[1], int(board[2]))
        if method != "GET" or match is None or match[1] not in self._store.repositories:
            return self._home(404)
        if match[2] is None:
            return self._list(match[1])
        return self._issue(match[1], int(match[2]))

    def _home(self, status: int) -> web.Response:
        places = {"repositories": sorted(self._store.repositories), "projects": sorted(self._projects)}
        return self._page("home.html", status, **places)

    def _board(self, owner: str, number: int) -> web.Response:
        """Columns of cards, those without a value first where there are any."""
        project = self._projects[owner, number]
        every = (versions[-1] for home in self._store.repositories.values() for versions in home.issues.values())
        issues = {f"I_{issue.id}": issue for issue in every if not issue.deleted}
        columns: dict[str, list[Issue]] = {name: [] for name in ("", *project.options)}
        for node, column in project.cards.items():
            if node in issues:
                columns[column].append(issues[node])
        shown = [(name, cards) for name, cards in columns.items() if name or cards]
        values = {"owner": owner, "number": number, "field": project.field, "columns": shown}
        return self._page("board.html", 200, **values)

    def _list(self, repository: str) -> web.Response:
        newest = [versions[-1] for versions in self._store.repositories[repository].issues.values()]
        shown = [issue for issue in reversed(newest) if not issue.deleted]
        return self._page("list.html", 200, repository=repository, issues=shown)

    def _issue(self, repository: str, number: int) -> web.Response:
        issue = self._store.issue(repository, number)
        if issue is None or issue.deleted:
            return self._home(404)
        lines = [_Line(event.id, event.actor, _time(event.at), _sentence(event), None) for event in issue.events]
        lines += [
            _Line(comment.id, comment.author, _time(comment.at), "commented", self.rendered(comment.body))
            for comment in issue.comments
        ]
        values = {"repository": repository, "issue": issue, "body": self.rendered(issue.body), "lines": sorted(lines)}
        values["milestone"] = self._store.repositories[repository].milestones.get(issue.milestone, "")
        return self._page("issue.html", 200, **values)

    def rendered(self, text: str) -> Markup:
        """Markdown as HTML. Tags are shown as text, but for those that fold; HTML comments are hidden, as on GitHub."""
        parts = _FOLD.split(_HIDDEN.sub("", text))
        return Markup("").join(self._part(part) for part in parts)

    def _part(self, part: str) -> Markup:
        if not _FOLD.fullmatch(part):
            return Markup(self._markdown.render(part))
        if part.lower().startswith("<summary>"):
            return Markup("<summary>{}</summary>").format(part[9:-10])
        return Markup(part.lower())

    def _page(self, template: str, status: int, **told: object) -> web.Response:
        text = self._templates.get_template(template).render(time=_time, status=status, **told)
        headers = {"content-security-policy": _POLICY, "x-content-type-options": "nosniff"}
        return web.Response(status=status, text=text, content_type="text/html", headers=headers)


def _time(at: object) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _sentence(event: TimelineEvent) -> str:
    """What happened, in words."""
    detail = dict(event.detail)
    words = {
        "labeled": "added the label {label}",
        "unlabeled": "removed the label {label}",
        "assigned": "assigned {assignee}",
        "unassigned": "unassigned {assignee}",
        "renamed": "changed the title from “{from}” to “{to}”",
        "milestoned": "added this to the milestone {milestone}",
        "demilestoned": "removed this from the milestone {milestone}",
        "closed": "closed this as {state_reason}",
        "reopened": "reopened this",
        "marked_as_duplicate": "marked this as a duplicate",
    }
    return words[event.kind].format(**detail).replace("not_planned", "not planned")
