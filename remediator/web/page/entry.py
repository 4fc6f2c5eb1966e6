"""Who comes in to the page: by a header, or by a cookie that the form has set. It is the token of the cluster itself.

The cookie is the only place where the page keeps it: every replica takes it, and nothing is stored.
"""

import ipaddress
import re
from urllib.parse import parse_qs

from aiohttp import web

from remediator.web.body import Bodies, NotTaken
from remediator.web.page.html import Pages
from remediator.web.page.readers import Entry, Readers

COOKIE = "__Host-remediator"
MOST, ROOM, SECONDS = 2**14, 2**18, 5.0
WHY = {
    Entry.NOT_SIGNED_IN: "This token is not one of the cluster for this page, or its time is over.",
    Entry.FORBIDDEN: "The user of this token may not list nodes and noderemediations: the role remediator-viewer may.",
    Entry.LATER: "The API server does not say now whose this token is. Try again.",
}
STATUS = {Entry.NOT_SIGNED_IN: 401, Entry.FORBIDDEN: 403, Entry.LATER: 503}
_OURS = re.compile(r"/(?:[A-Za-z0-9._~%-][A-Za-z0-9._~%/?=&+-]*)?")


class Door:
    """Lets readers in. `signs` False: everybody on this machine may, in clear text, for trying out."""

    def __init__(self, readers: Readers, *, signs: bool) -> None:
        self.pages = Pages(signs=signs)
        self._readers, self._signs = readers, signs
        self._taken = Bodies("page", MOST, ROOM, SECONDS)

    async def refusal(self, request: web.Request) -> web.Response | None:
        """What somebody gets who may not read; None for those who may."""
        if not self._signs:
            return None if _is_loopback(request.host) else self._refused(request, 421, "Ask for it as 127.0.0.1.")
        token = token_of(request)
        if not token and request.headers.get("Sec-Fetch-Site") == "cross-site":
            return web.Response(body=self.pages.again(), content_type="text/html", charset="utf-8")
        entry = await self._readers.entry(token)
        if entry is Entry.MAY:
            return None
        return self._refused(request, STATUS[entry], WHY[entry] if token else "")

    async def lets_in(self, request: web.Request) -> bool:
        """Whether who was let in still is."""
        return not self._signs or await self._readers.entry(token_of(request)) is Entry.MAY

    async def sign_in(self, request: web.Request) -> web.StreamResponse:
        """Keeps a token that is good in a cookie, and leads to where its bearer wanted to go."""
        if _is_from_elsewhere(request):
            return self._refused(request, 403, "Sign in on this page, not on that of somebody else.")
        try:
            async with self._taken.read(request) as body:
                form = parse_qs(body.decode(errors="replace"), max_num_fields=4)
        except (NotTaken, ValueError):
            return self._refused(request, 400, "This is not what the form sends.")
        token, to = (form.get(name, [""])[0].strip() for name in ("token", "to"))
        entry = await self._readers.entry(token)
        if entry is not Entry.MAY:
            return self._refused(request, STATUS[entry], WHY[entry], to)
        answer = web.Response(status=303, headers={"Location": place(to)})
        answer.set_cookie(COOKIE, token, secure=True, httponly=True, samesite="Strict", path="/")
        return answer

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        """Lets the browser forget the token, which stays good."""
        if _is_from_elsewhere(request):
            return self._refused(request, 403, "Sign out on this page, not on that of somebody else.")
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.del_cookie(COOKIE, secure=True, httponly=True, samesite="Strict", path="/")
        return answer

    def _refused(self, request: web.Request, status: int, why: str, to: str = "") -> web.Response:
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        if request.path.startswith("/api/"):
            return web.json_response({"error": why or "show a bearer token"}, status=status, headers=headers)
        wanted = place(to or (request.path_qs if request.method == "GET" else "/"))
        body = self.pages.sign_in(why, wanted) if self._signs else self.pages.message("Refused", why)
        return web.Response(body=body, content_type="text/html", charset="utf-8", status=status, headers=headers)


def token_of(request: web.Request) -> str:
    """What somebody shows, "" for nothing. A header counts before a cookie."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme:
        return given.strip() if scheme.lower() == "bearer" else ""
    return request.cookies.get(COOKIE, "")


def place(wanted: str) -> str:
    """A place on this page; its first for what is none: nobody is led to another site.

    >>> place("/nodes/gpu-1"), place("//evil.example"), place("https://evil.example")
    ('/nodes/gpu-1', '/', '/')
    """
    return wanted if _OURS.fullmatch(wanted) else "/"


def _is_from_elsewhere(request: web.Request) -> bool:
    """Whether the browser says that a page of another origin has sent its form to us."""
    return request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none")


def _is_loopback(host: str) -> bool:
    """Whether a browser was led here by a name of this machine: any other may be a name of somebody else for it."""
    name = re.sub(r":\d+$", "", host).strip("[]")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
