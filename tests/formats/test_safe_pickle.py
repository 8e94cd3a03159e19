"""Pickles of plain values are read; everything else is refused, and nothing is ever run."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allaboard.formats.safe_pickle import UnsafePickleError, read_plain_pickle

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner, inner, inner)
    ),
    max_leaves=20,
)


@given(PLAIN, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_back(value: object, protocol: int) -> None:
    assert read_plain_pickle(pickle.dumps(value, protocol)) == value


@given(PLAIN, st.integers(0, 400))
def test_half_of_a_pickle_is_refused(value: object, at: int) -> None:
    data = pickle.dumps(value)
    with pytest.raises(UnsafePickleError):
        read_plain_pickle(data[: at % len(data)])


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_plain_pickle(b"\x80\x04" + data)
    except UnsafePickleError:
        pass


@pytest.mark.parametrize("value", [print, complex(1), {1, 2}, range(3), ValueError()])
def test_what_is_not_plain_is_refused(value: object) -> None:
    with pytest.raises(UnsafePickleError, match="would run code"):
        read_plain_pickle(pickle.dumps([value]))


def test_keys_that_nest_and_numbers_that_fill_the_memory_are_refused() -> None:
    with pytest.raises(UnsafePickleError, match="a key"):
        read_plain_pickle(pickle.dumps({(1, (2,)): 3}))
    with pytest.raises(UnsafePickleError, match="16 bytes"):
        read_plain_pickle(pickle.dumps(1 << 4000))


def test_a_very_deep_pickle_ends_nobody() -> None:
    assert read_plain_pickle(b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".") is not None
