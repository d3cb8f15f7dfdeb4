"""Errors of the admin port as problem details (RFC 9457)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from tidegate.errors import HttpRequestError

PROBLEM_TYPE = "application/problem+json"


def problem_json(error: HttpRequestError) -> str:
    """The body of the answer to a request that cannot be done.

    >>> problem_json(HttpRequestError(404, "there is no neighbour 'x'"))
    '{"title": "Not Found", "status": 404, "detail": "there is no neighbour \\'x\\'"}'
    """
    problem: dict[str, Any] = {
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.detail,
    }
    if error.errors:
        problem["errors"] = [{"index": index, "detail": text} for index, text in error.errors]
    return json.dumps(problem, ensure_ascii=False)
