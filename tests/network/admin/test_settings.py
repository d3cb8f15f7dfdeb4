from __future__ import annotations

from tidegate.network.admin.settings import AdminSettings, token_digest


def test_token_is_kept_as_a_digest() -> None:
    settings = AdminSettings(token_digest("long and random"))
    assert settings.admits("long and random")
    assert not settings.admits("long and random ")
    assert not settings.admits("")
    assert "random" not in repr(settings)
