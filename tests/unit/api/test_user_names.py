"""Names of users are asked for once, however many jobs a page has."""

from steward.api.user_names import UserNames


class Directory:
    def __init__(self) -> None:
        self.asked: list[int] = []
        self.names = {1000: "ada"}
        self.now = 0.0

    def look_up(self, uid: int) -> str:
        self.asked.append(uid)
        return self.names[uid]

    def monotonic(self) -> float:
        return self.now


def test_a_name_is_asked_for_once_for_many_jobs() -> None:
    directory = Directory()
    names = UserNames(directory.look_up, directory.monotonic)
    assert [names(uid) for uid in (1000, 1000, 1001, 1001, 1000)] == ["ada", "ada", "1001", "1001", "ada"]
    assert directory.asked == [1000, 1001]


def test_after_a_minute_it_is_asked_for_again() -> None:
    directory = Directory()
    names = UserNames(directory.look_up, directory.monotonic)
    assert names(1001) == "1001"
    directory.names[1001], directory.now = "grace", 61.0
    assert names(1001) == "grace"


def test_a_number_that_no_machine_can_have_is_told_as_a_number() -> None:
    assert UserNames()(1 << 80) == str(1 << 80)
