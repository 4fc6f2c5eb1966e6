"""Views as HTML. Whatever comes from outside is escaped, and has no control characters."""

import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from remediator.core.text import printable
from remediator.web.page.api_view import addresses, schemas
from remediator.web.page.detail_view import CaseDetail, NodeView, tag
from remediator.web.page.fleet_view import FleetView, counted
from remediator.web.page.node_standing import NodeStanding
from remediator.web.page.search import Matches

FOLDER = Path(__file__).parent
WEB_PAGE = re.compile(r"https?://[!-~]+")  # no blanks, no control characters


class Pages:
    """Makes pages. `signs`: whether readers sign in, and may sign out."""

    def __init__(self, *, signs: bool) -> None:
        self._signs = signs

    def fleet(self, view: FleetView, tag: str) -> bytes:
        """The first page."""
        return self._made("fleet.html", view=view, tag=tag, events="/events", states=tuple(NodeStanding))

    def now(self, view: FleetView) -> bytes:
        """The part of it that is loaded anew after each change."""
        return self._made("now.html", view=view)

    def node(self, view: NodeView) -> bytes:
        """One node."""
        return self._made("node.html", view=view, tag=tag(view), events=f"/nodes/{_segment(view.name)}/events")

    def case(self, view: CaseDetail) -> bytes:
        """One case."""
        return self._made("case.html", view=view, tag=tag(view), events=f"/cases/{_segment(view.name)}/events")

    def search(self, query: str, matched: Matches, stale: str) -> bytes:
        """What has these letters in its name."""
        return self._made("search.html", query=query, matched=matched, stale=stale)

    def api(self) -> bytes:
        """What the JSON is."""
        return self._made("api.html", addresses=addresses(), schemas=schemas())

    def sign_in(self, why: str, to: str) -> bytes:
        """The form, which leads to `to`."""
        return str(escape(to)).join(_form(why)).encode(errors="replace")

    def message(self, title: str, text: str) -> bytes:
        """A sentence."""
        return self._made("message.html", title=title, text=text)

    def again(self) -> bytes:
        """Leads to itself: then the browser sends what it does not send after a link of another site."""
        return self._made("again.html")

    def _made(self, template: str, **values: Any) -> bytes:
        return environment().get_template(template).render(signs=self._signs, **values).encode(errors="replace")


_TO = "{to}"  # no page of ours has braces


@cache
def _form(why: str) -> tuple[str, ...]:
    """What stands around the address to which it leads. Made once: strangers ask for it without end."""
    form = environment().get_template("sign_in.html").render(signs=True, why=why, to=_TO)
    return tuple(form.split(_TO))


@cache
def environment() -> jinja2.Environment:
    """Escapes everything that no template of ours has written."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["segment"] = _segment
    made.filters["counted"] = counted
    made.filters["lines"] = _lines
    made.filters["linked"] = _linked
    return made


def _shown(value: Any) -> Any:
    """Text from outside; what a template has made is marked, and has line breaks of ours."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Markup:
    """Text that may have several lines."""
    return Markup("\n").join(printable(line) for line in text.splitlines())


def _linked(address: str) -> Markup:
    """A link where it is the address of a web page; anything else, such as a script, is text."""
    shown = Markup("<code>{}</code>").format(printable(address))
    if not WEB_PAGE.fullmatch(address):
        return shown
    return Markup('<a href="{}" rel="noreferrer noopener">{}</a>').format(address, shown)


def _segment(name: str) -> str:
    """One part of a path."""
    return quote(name, safe="", errors="replace")


@cache
def static() -> dict[str, tuple[bytes, str]]:
    """The files beside the pages: what is in them, and its type."""
    types = {".css": "text/css", ".js": "text/javascript"}
    files = sorted((FOLDER / "static").iterdir())
    return {file.name: (file.read_bytes(), types[file.suffix]) for file in files if file.suffix in types}
