"""Files of changes: the log of subscribe, update and unsubscribe."""

from __future__ import annotations

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.input_file import Advance, InputFile
from tidegate.cli.files.rows import RowLayout, read_rows
from tidegate.matching.history.changes import FIELDS, Change

_LAYOUT = RowLayout("a change", FIELDS, ("time", "op", "id"), Change.of)


def read_changes(file: InputFile, bad: BadLines, advance: Advance) -> list[tuple[int, Change]]:
    """The changes of a file in the order of their times, each with the number of its row.

    Changes of the same time stay in the order of the file.
    """
    changes = list(read_rows(file, _LAYOUT, bad, advance))
    changes.sort(key=lambda numbered: numbered[1].time)  # stable
    return changes
