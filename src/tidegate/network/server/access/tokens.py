"""Tokens: made at random, kept as salted hashes, checked once and then known.

Rules.

(1) The file of a broker has `scrypt:N:R:P:SALT:HASH`, never a token. Scrypt takes some milliseconds
    and megabytes, so a stolen file does not give the tokens away.
(2) It would also hold up the broker for everybody. So it runs in one thread beside the event loop,
    with a bound on how many wait; and a token that was right is known from then on by a keyed
    digest, so that reconnecting costs nothing.
(3) A token for an identity that does not exist is checked against a hash of nothing, so that the
    time of the answer does not tell which identities exist.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tidegate.errors import OverloadedError, SettingsError

COST, BLOCKS, LANES = 1 << 13, 8, 1
"""Of scrypt: 8 MB and about 20 ms."""
MEMORY_BYTES_MAX = 1 << 26
WAITING_MAX = 64
"""Tokens that wait to be checked."""
KNOWN_MAX = 100_000
TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class HashedToken:
    """A token as the file of a broker has it."""

    cost: int
    blocks: int
    lanes: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, token: str) -> HashedToken:
        """The hash of a token, with a salt of its own.

        >>> HashedToken.parse(str(HashedToken.of("secret"))).fits("secret")
        True
        """
        salt = secrets.token_bytes(16)
        return cls(COST, BLOCKS, LANES, salt, _digest(token, COST, BLOCKS, LANES, salt))

    @classmethod
    def parse(cls, text: str) -> HashedToken:
        """Read a hash; raises SettingsError, which does not repeat the text."""
        try:
            kind, cost, blocks, lanes, salt, digest = text.split(":")
            found = cls(int(cost), int(blocks), int(lanes), _decoded(salt), _decoded(digest))
        except ValueError:
            kind, found = "", None
        if kind != "scrypt" or found is None or not found._is_sound():
            raise SettingsError(
                "is no hash of a token; `tidegate broker token NAME` writes one, and the token "
                "itself does not belong in this file"
            )
        return found

    def _is_sound(self) -> bool:
        is_power = self.cost > 1 and self.cost & (self.cost - 1) == 0
        memory = 128 * self.cost * self.blocks
        return (
            is_power
            and self.blocks > 0
            and 1 <= self.lanes <= 16
            and memory <= MEMORY_BYTES_MAX
            and len(self.salt) >= 8
            and len(self.digest) == 32
        )

    def fits(self, token: str) -> bool:
        """Whether this is the hash of a token; takes long."""
        found = _digest(token, self.cost, self.blocks, self.lanes, self.salt)
        return hmac.compare_digest(found, self.digest)

    def __str__(self) -> str:
        parts = ("scrypt", self.cost, self.blocks, self.lanes, _encoded(self.salt),
                 _encoded(self.digest))  # fmt: skip
        return ":".join(map(str, parts))


NOBODY = HashedToken(COST, BLOCKS, LANES, bytes(16), bytes(32))
"""What no token fits, as far as anyone knows."""


def new_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class TokenChecker:
    """Checks tokens beside the event loop, and remembers those that were right."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._known: dict[tuple[HashedToken, bytes], None] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidegate tokens")
        self._waiting = 0

    def is_known(self, token: str, hashed: HashedToken) -> bool:
        """Whether a token was right before; at once."""
        return (hashed, self._short(token)) in self._known

    async def is_right(self, token: str, hashed: HashedToken | None) -> bool:
        """Whether a token fits a hash, or None for that of nobody; raises OverloadedError."""
        if self._waiting >= WAITING_MAX:
            raise OverloadedError(f"{WAITING_MAX} tokens wait to be checked; come again")
        self._waiting += 1
        try:
            checked = hashed or NOBODY
            found = await asyncio.get_running_loop().run_in_executor(
                self._thread, checked.fits, token
            )
        finally:
            self._waiting -= 1
        if found and hashed is not None:
            if len(self._known) >= KNOWN_MAX:
                self._known.pop(next(iter(self._known)))
            self._known[hashed, self._short(token)] = None
        return found and hashed is not None

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _short(self, token: str) -> bytes:
        return hashlib.blake2b(_bytes(token), key=self._key, digest_size=32).digest()


def _digest(token: str, cost: int, blocks: int, lanes: int, salt: bytes) -> bytes:
    return hashlib.scrypt(
        _bytes(token), salt=salt, n=cost, r=blocks, p=lanes, dklen=32, maxmem=2 * MEMORY_BYTES_MAX
    )


def _bytes(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError("no base64") from None
