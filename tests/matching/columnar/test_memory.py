from tidegate.matching.columnar.memory import give_back_memory


def test_giving_memory_back_takes_nothing_that_is_in_use() -> None:
    held = [bytes(1000) for _ in range(1000)]
    give_back_memory()
    assert all(len(each) == 1000 for each in held)
