from __future__ import annotations

from tidegate.network.websocket.settings import WebSocketSettings


def test_programs_have_no_origin_and_pages_must_be_admitted() -> None:
    settings = WebSocketSettings(origins=("https://a.example",))
    assert settings.admits(None)
    assert settings.admits("https://a.example")
    assert not settings.admits("https://a.example.evil.example")
    assert not settings.admits("null")
    assert not WebSocketSettings().admits("http://127.0.0.1:7090")
    assert WebSocketSettings(origins=("*",)).admits("http://anything")
