"""Who we are for GitHub: a token in a file, or an App with its key in one. Files are read again when they change."""

import re
from abc import abstractmethod
from pathlib import Path
from typing import Any

import requests
from github import Auth
from github.Requester import Requester, WithRequester

from remediator import secret_file
from remediator.tickets.channels.github.errors import NoInstallationToken


class SecretFile:
    """A secret in a file, so that a rotation needs no restart. `wrong` says what is wrong with it, "" for nothing."""

    def __init__(self, path: Path, wrong: secret_file.Wrong) -> None:
        self._path, self._wrong = path, wrong
        self._stamp: tuple[int, int, int] | None = None
        self._text = ""

    def text(self) -> str:
        """What the file holds now. A file that is away for a moment leaves the secret as it was.

        Raises:
            OSError: there has never been a secret in it, or what is in it cannot be one.
        """
        self.renew(force=False)
        if not self._text:
            raise OSError(f"the file {self._path} holds no token or key")
        return self._text

    def renew(self, *, force: bool = True) -> bool:
        """Read the file again, if it changed or by force; True when the secret in it is another one."""
        try:
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            again = force or stamp != self._stamp
            text = secret_file.read(self._path, self._wrong) if again else self._text
        except OSError:
            if self._text:
                return False
            raise
        except ValueError as error:
            raise OSError(str(error)) from None
        before, self._text, self._stamp = self._text, text or self._text, stamp
        return before != self._text


class Credentials(Auth.Auth):
    """What requests carry. `token` raises OSError for a file to be corrected, NoToken where GitHub gave none."""

    @property
    def token_type(self) -> str:
        return "token"

    @abstractmethod
    def renew(self) -> bool:
        """GitHub has refused the token: True when there may be another one now."""

    @abstractmethod
    def hidden(self, text: str) -> str:
        """A text of somebody else without what is secret: a proxy may repeat what it was sent."""


class GithubTokenFile(Credentials):
    """A fine-grained, personal or installation token in a file."""

    def __init__(self, path: str | Path) -> None:
        self._file = SecretFile(Path(path), secret_file.not_one_word)
        self._sent = ""

    @property
    def token(self) -> str:
        self._sent = self._file.text()
        return self._sent

    def renew(self) -> bool:
        return self._file.renew()

    def hidden(self, text: str) -> str:
        return _without(text, self._sent)


class AppKeyFile(Credentials, WithRequester["AppKeyFile"]):
    """A GitHub App as it is installed in one organization: with its private key it gets tokens for an hour.

    Args:
        app: the App's id, or its client id.
        installation: the number of its installation.
        path: its private key, PEM.
    """

    def __init__(self, app: str, installation: int, path: str | Path) -> None:
        super().__init__()
        self._file = SecretFile(Path(path), _no_key)
        self._path, self._installation = path, installation
        self._app = Auth.AppAuth(app, sign_func=self._signed)
        self._sent: tuple[str, str] = ("", "")  # the last token of the installation, and the last proof of who we are

    def withRequester(self, requester: Requester) -> "AppKeyFile":
        """Called by PyGithub: how tokens of the installation are asked for."""
        super().withRequester(requester)
        self._forget()
        return self

    @property
    def token(self) -> str:
        try:
            token = self._auth.token
        except Exception as error:
            if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
                raise  # of the file
            self._forget()
            raise NoInstallationToken(error) from None
        if not token:
            self._forget()
            raise NoInstallationToken(ValueError("no answer of GitHub's"))
        self._sent = (token, self._sent[1])
        return token

    def renew(self) -> bool:
        if not self._sent[0]:
            return False
        self._forget()
        return True

    def hidden(self, text: str) -> str:
        return _without(text, *self._sent)

    def _forget(self) -> None:
        self._sent = ("", self._sent[1])
        self._auth = self._app.get_installation_auth(self._installation, requester=self.requester)

    def _signed(self, claims: dict[str, Any]) -> str:
        sign = Auth.AppAuth.create_jwt_sign(self._file.text(), "RS256")
        try:
            proof = str(sign(claims))
        except Exception:  # whatever it says, it may quote the key
            raise OSError(f"the file {self._path} {NO_KEY}") from None
        self._sent = (self._sent[0], proof)
        return proof


NO_KEY = "holds no private key in PEM; write the key of the App alone into it, as GitHub gave it"


def _no_key(text: str) -> str:
    return "" if re.match("-----BEGIN (RSA )?PRIVATE KEY-----\n", text) else NO_KEY


def _without(text: str, *secrets: str) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "[secret]")
    return text
