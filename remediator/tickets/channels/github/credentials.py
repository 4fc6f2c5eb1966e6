"""The token for GitHub: a file, read again when it changes, so that a rotation needs no restart."""

import re
from pathlib import Path

from github import Auth


class TokenFile(Auth.Auth):
    """A personal, fine-grained or installation token in a file."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._stamp: tuple[int, int, int] | None = None
        self._token = ""

    @property
    def token_type(self) -> str:
        return "token"

    @property
    def token(self) -> str:
        """What the file holds now. A file that is away for a moment leaves the token as it was.

        Raises:
            OSError: there has never been a token in it, or there is more in it than one.
        """
        self.renew(force=False)
        if not self._token:
            raise OSError(f"the file {self._path} holds no token")
        return self._token

    def renew(self, *, force: bool = True) -> bool:
        """Read the file again, if it changed or by force; True when the token in it is another one."""
        try:
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            again = force or stamp != self._stamp
            token = self._path.read_text(errors="replace").strip() if again else self._token
        except OSError:
            if self._token:
                return False
            raise
        if not re.fullmatch("[!-~]*", token):  # no header holds it, and an error about it would quote it
            raise OSError(f"the file {self._path} holds more than one word of ASCII; write the token alone into it")
        before, self._token, self._stamp = self._token, token or self._token, stamp
        return before != self._token
