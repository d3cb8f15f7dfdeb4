"""The code of all programs, and the room of those that were dropped."""

from __future__ import annotations

from tidegate.matching.rows.entries.program_codes import ProgramCodes


def test_a_dropped_program_leaves_its_room_to_another_one_of_its_length() -> None:
    codes = ProgramCodes()
    assert [codes.add(code) for code in ((1, 2, 0), (3, 0), (4, 5, 0))] == [0, 3, 5]
    before = codes.array
    codes.drop((1, 2, 0))
    codes.drop((7, 7, 0))  # which was never added
    assert (codes.add((6, 0)), codes.add((7, 8, 0))) == (8, 0)
    assert codes.array.tolist() == [7, 8, 0, 3, 0, 4, 5, 0, 6, 0, 0]
    assert before.tolist() == [1, 2, 0, 3, 0, 4, 5, 0, 0]  # who has an array keeps its programs
    assert len(codes) == 4


def test_programs_come_back_where_they_were() -> None:
    codes = ProgramCodes()
    for code in ((1, 0), (2, 0), (3, 3, 0), (4, 0)):
        codes.add(code)
    codes.drop((2, 0))
    codes.drop((4, 0))
    again = ProgramCodes(codes.starts(), codes.free())
    assert again.starts() == codes.starts()
    assert sorted([again.add((4, 0)), again.add((5, 0))]) == [2, 7]
    assert (again.add((6, 0)), len(again.array)) == (9, 12)


def test_programs_that_come_and_go_take_no_more_room() -> None:
    codes = ProgramCodes()
    for number in range(1000):
        codes.add((number, 1, 0))
        codes.drop((number, 1, 0))
    assert codes.array.tolist() == [999, 1, 0, 0]
