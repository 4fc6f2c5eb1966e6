"""Who may ask: one token, and a GitHub App that makes others."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import count

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from remediator_sim.github.refusal import Refusal, not_found

APP, INSTALLATION = 1, 100
LIFE = timedelta(hours=1)


@dataclass
class Tokens:
    """The token in force, and those of the App with their ends."""

    current: str = "ghp_fake1"
    _made: dict[str, datetime] = field(default_factory=dict)
    _numbers: count = field(default_factory=lambda: count(2))  # type: ignore[type-arg]

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def private_key(self) -> str:
        """The App's, PEM."""
        kind, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        return self._key.private_bytes(serialization.Encoding.PEM, kind, plain).decode()

    def rotate(self) -> str:
        """Another token; the one before is refused from now on."""
        self.current = f"ghp_fake{next(self._numbers)}"
        return self.current

    def check(self, header: str, now: datetime) -> None:
        """Refuse (401) what is not one of ours."""
        token = header.partition(" ")[2]
        if token != self.current and self._made.get(token, now) <= now:
            raise Refusal(401, "Bad credentials")

    def issue(self, header: str, installation: str, now: datetime) -> tuple[str, str]:
        """A token of the App for one hour, and its end, for a JWT signed with its key."""
        try:
            claims = jwt.decode(header.partition(" ")[2], self._key.public_key(), algorithms=["RS256"])
        except jwt.InvalidTokenError:
            raise Refusal(401, "A JSON web token could not be decoded") from None
        if claims.get("iss") != str(APP) or installation != str(INSTALLATION):
            raise not_found("Integration not found")
        token = f"ghs_fake{next(self._numbers)}"
        self._made[token] = now + LIFE
        return token, (now + LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
