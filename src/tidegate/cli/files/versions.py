"""Files of subscriptions or of changes, read as versions: how each stood, and when."""

from __future__ import annotations

from pathlib import Path

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.changes import read_changes
from tidegate.cli.files.input_file import STDIN, Advance, InputFile
from tidegate.cli.files.subscriptions import read_subscriptions
from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.parsing.bulk import BulkParser
from tidegate.matching.history.versions import Version, versions_of
from tidegate.matching.json_lines import decode_line
from tidegate.matching.records import subscription_of


def is_log(file: InputFile) -> bool:
    """Whether a file has changes in it, by its columns or by its first line."""
    if file.path == STDIN or Path(file.path).is_fifo():
        raise file.error(
            "can be read only once, and its first line says whether it has subscriptions or "
            "changes in it; give a file"
        )
    if file.is_parquet:
        return "op" in file.schema.names
    for _, line in file.lines(lambda _: None):
        try:
            return "op" in decode_line(line)
        except TidegateError:
            return False  # reading it as subscriptions says what is wrong
    return False


def read_table(file: InputFile, bad: BadLines, advance: Advance) -> list[Version]:
    """The subscriptions of a file that can be used; the others are noted."""
    parser = BulkParser()
    good: dict[str, Version] = {}
    for number, record in read_subscriptions(file, bad, advance):
        try:
            if record.id in good:
                raise SubscriptionError(f"there already is a subscription {record.id!r}")
            subscription_of(record, parser)
            good[record.id] = record
        except TidegateError as error:
            bad.add(file, number, error)
    return list(good.values())


def read_log(file: InputFile, bad: BadLines, advance: Advance) -> list[Version]:
    """The versions that the changes of a file make; those that cannot be made are noted."""
    numbered = read_changes(file, bad, advance)
    number_of = {id(change): number for number, change in numbered}
    versions, refused = versions_of(change for _, change in numbered)
    for each in refused:
        bad.add(file, number_of[id(each.change)], SubscriptionError(each.reason))
    return versions
