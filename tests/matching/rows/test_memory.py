from tidegate.matching.rows.memory import release_memory


def test_releasing_memory_leaves_what_is_in_use() -> None:
    objects = [bytes(1000) for _ in range(1000)]
    release_memory()
    assert all(len(each) == 1000 for each in objects)
