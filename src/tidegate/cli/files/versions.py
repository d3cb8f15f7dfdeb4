"""Files of subscriptions or of changes, read as versions of subscriptions.

Versions are what the commands on Spark need: all versions of all times in one index. The commands
in one process play a log instead (`cli/replay.py`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.changes import read_changes
from tidegate.cli.files.input_file import STDIN, Advance, InputFile
from tidegate.cli.files.subscriptions import read_subscriptions
from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.spaces import Space
from tidegate.matching.history.timelines import versions_of
from tidegate.matching.history.versions import Version
from tidegate.matching.json_lines import decode_line
from tidegate.matching.records import subscription_of


def is_log(file: InputFile) -> bool:
    """Whether a file is a log of changes, by its columns or its first line."""
    if file.path == STDIN or Path(file.path).is_fifo():
        raise file.error(
            "can be read only once, and its first line is needed to find out whether it has "
            "subscriptions or changes; give a file"
        )
    if file.is_parquet:
        return "op" in file.schema.names
    for _, line in file.lines(lambda _: None):
        try:
            return "op" in decode_line(line)
        except TidegateError:
            return False  # reading it as a table then reports the bad line
    return False


def read_table(
    file: InputFile, bad: BadLines, advance: Advance, space: Space | None = None
) -> list[Version]:
    """The subscriptions of a file, a version each; bad rows are collected in ``bad``."""
    parser = BulkParser()
    versions: dict[str, Version] = {}
    for number, record in read_subscriptions(file, bad, advance):
        try:
            if record.id in versions:
                raise SubscriptionError(f"there already is a subscription {record.id!r}")
            # also without a space, to find errors of the filter
            subscription = subscription_of(record, parser, space)
            versions[record.id] = replace(record, params=subscription.parameters)
        except TidegateError as error:
            bad.add(file, number, error)
    return list(versions.values())


def read_log(
    file: InputFile, bad: BadLines, advance: Advance, space: Space | None = None
) -> list[Version]:
    """The versions that a log of changes makes; bad rows, and changes that cannot be applied, are
    collected in ``bad``."""
    numbered = read_changes(file, bad, advance)
    # By identity, because two rows may have equal changes.
    number_of = {id(change): number for number, change in numbered}
    versions, refused = versions_of((change for _, change in numbered), space)
    for each in refused:
        bad.add(file, number_of[id(each.change)], SubscriptionError(each.reason))
    return versions
