"""Lines that a terminal broke are joined; lines that merely fill it are not."""

from __future__ import annotations

from allaboard.formats.dumps.wrapped_lines import join_wrapped_lines

WIDTH = 80
LONG = [f"rank {n} " + "waitsforthecollectivethatnobodyelsehasentered" * 3 for n in range(4)]


def _broken(lines: list[str]) -> str:
    return "\n".join(
        line[i : i + WIDTH] for line in lines for i in range(0, max(1, len(line)), WIDTH)
    )


def test_broken_lines_are_joined_and_keep_their_numbers() -> None:
    joined = join_wrapped_lines(_broken(["begin", *LONG, "end"]))
    assert joined is not None
    assert joined.text.split("\n") == ["begin", *LONG, "end"]
    assert joined.numbers == (1, 2, 4, 6, 8, 10)


def test_a_table_that_fills_the_terminal_is_left() -> None:
    assert join_wrapped_lines("\n".join(["|" + "-" * 98 + "|", "a"] * 9)) is None


def test_few_lines_of_one_length_are_left() -> None:
    assert join_wrapped_lines(_broken(LONG[:2])) is None


def test_a_longer_line_shows_that_nothing_was_broken() -> None:
    assert join_wrapped_lines(_broken(LONG) + "\n" + "x" * 200) is None


def test_narrow_columns_are_left() -> None:
    assert join_wrapped_lines("\n".join(["abcdef", "ghijkl"] * 20)) is None


def test_three_lines_of_the_full_width_that_all_go_on_are_joined() -> None:
    joined = join_wrapped_lines(_broken(LONG[:3]))
    assert joined is not None and joined.text.split("\n") == LONG[:3]


def test_three_lines_of_one_length_of_which_one_does_not_go_on_are_left() -> None:
    lines = _broken(LONG[:3]).split("\n")
    lines[1] = " " + lines[1]
    assert join_wrapped_lines("\n".join(lines)) is None
