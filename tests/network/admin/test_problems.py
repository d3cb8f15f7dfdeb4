from __future__ import annotations

import json

from tidegate.errors import HttpRequestError
from tidegate.network.admin.problems import problem_json


def test_problem_names_the_events_that_are_wrong() -> None:
    error = HttpRequestError(422, "1 of 2 events is wrong", [(1, "a list is not a value")])
    assert json.loads(problem_json(error)) == {
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "1 of 2 events is wrong",
        "errors": [{"index": 1, "detail": "a list is not a value"}],
    }
    assert str(error) == "1 of 2 events is wrong"
