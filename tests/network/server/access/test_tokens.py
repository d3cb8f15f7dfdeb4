from __future__ import annotations

import asyncio

import pytest

from tidegate.errors import OverloadedError, SettingsError
from tidegate.network.server.access.tokens import HashedToken, TokenChecker, new_token


def test_a_hash_fits_its_token_only() -> None:
    token = new_token()
    hashed = HashedToken.of(token)
    assert hashed.fits(token)
    assert not any(hashed.fits(each) for each in ("", token + "x", token[:-1], "\udcff"))
    assert str(HashedToken.of(token)) != str(hashed)  # another salt
    assert HashedToken.parse(str(hashed)) == hashed
    assert token not in str(hashed)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "my secret",
        lambda text: text.replace("scrypt", "bcrypt"),
        lambda text: text.replace("8192", "8191"),
        lambda text: text.replace("8192", str(1 << 30)),
        lambda text: text.replace(":8:1:", ":0:1:"),
        lambda text: text.replace(":8:1:", ":8:99:"),
        lambda text: text[:-9],
        lambda text: text + "!",
        lambda text: text + ":x",
    ],
)
def test_what_is_no_hash_is_not_repeated(change: object) -> None:
    text = change(str(HashedToken.of("x")))  # type: ignore[operator]
    with pytest.raises(SettingsError, match="is no hash of a token; `tidegate broker token") as no:
        HashedToken.parse(text)
    assert text not in str(no.value)


def test_a_token_is_checked_once_and_known_then() -> None:
    async def main() -> None:
        checker, hashed, other = TokenChecker(), HashedToken.of("x"), HashedToken.of("y")
        assert not checker.is_known("x", hashed)
        assert await checker.is_right("x", hashed)
        assert checker.is_known("x", hashed)
        assert not checker.is_known("x", other)
        assert not await checker.is_right("x", other)
        assert not await checker.is_right("x", None)
        assert not checker.is_known("y", hashed)
        checker.close()

    asyncio.run(main())


def test_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.network.server.access.tokens.WAITING_MAX", 1)

    async def main() -> None:
        checker, hashed = TokenChecker(), HashedToken.of("x")
        found = await asyncio.gather(
            *(checker.is_right("x", hashed) for _ in range(3)), return_exceptions=True
        )
        assert found[0] is True
        assert all(isinstance(each, OverloadedError) for each in found[1:])
        assert await checker.is_right("x", hashed)
        checker.close()

    asyncio.run(main())


def test_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.network.server.access.tokens.KNOWN_MAX", 1)

    async def main() -> None:
        checker, first, second = TokenChecker(), HashedToken.of("x"), HashedToken.of("y")
        assert await checker.is_right("x", first)
        assert await checker.is_right("y", second)
        assert not checker.is_known("x", first)
        assert checker.is_known("y", second)
        checker.close()

    asyncio.run(main())
