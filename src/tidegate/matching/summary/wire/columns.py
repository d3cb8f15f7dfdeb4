"""Columns of numbers and texts as bytes, and the memory that a message may take.

Rules. (1) Nothing is allocated before the `Allowance` is asked for it: a count is only a claim.
(2) Each content has one form: a varint that could be shorter, or a column in the longer of its two
forms, is refused. (3) What is malformed is a SummaryError and no other exception.

A *varint* has seven bits in a byte, the lowest first; all its bytes but the last have the high bit
set. It is less than 2 ** 63. A *column* of one number is a varint, and one of none is nothing. One
of n numbers is a byte and then, whichever is shorter (the first if both are as long):

- a byte w of 0 to 63: a varint, the base; then n numbers of w bits each, the lowest bit first, w
  as small as can be, and zeros up to a whole byte. Each number is the base plus its bits.
- the byte 64: n varints.

The codings of `layout` are made of them:

    number      a varint
    numbers     a varint n, and a column of n numbers
    ascending   a varint n; if n > 0 the first number as a varint of its zigzag form (0, -1, 1, -2
                are 0, 1, 2, 3), and a column of the n - 1 differences to the number before
    floats      a varint n, and n float64, little-endian, none of them NaN
    texts       a varint n; a column of n lengths, which say how many bytes of UTF-8 a text shares
                with the one before it, as many as it can; a column of n lengths of what is left;
                and these bytes

All is done on whole arrays, because a summary has tens of thousands of entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from tidegate.errors import SummaryError
from tidegate.matching.arrays import F64, I64, U8
from tidegate.matching.summary.wire.layout import CODINGS

NUMBER_MAX = 2**63 - 1
VARINT_BYTES_MAX = 9
VARINTS = 64
"""The byte of a column of varints; a smaller one is the width of packed numbers."""

_TEXT_BYTES = 64
"""What a Python string takes besides its characters, about."""

_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class WireLimits:
    """What a received message may be and take; whatever exceeds it is a SummaryError.

    A message may take ``memory_free`` bytes, and ``memory_per_byte`` bytes more for each of its
    bytes. Tables are longer than their message, because a run of many rows is two numbers, but a
    small message cannot make a large table.
    """

    message_bytes_max: int = 64 * 2**20
    memory_bytes_max: int = 2**30
    memory_free: int = 16 * 2**20
    memory_per_byte: int = 16 * 2**10


class Allowance:
    """The memory that one message may still take."""

    def __init__(self, limits: WireLimits, message_bytes: int, held_bytes: int = 0) -> None:
        if message_bytes > limits.message_bytes_max:
            raise SummaryError(
                f"a summary of {message_bytes} bytes exceeds the limit of "
                f"{limits.message_bytes_max}"
            )
        grown = limits.memory_free + held_bytes + limits.memory_per_byte * message_bytes
        self._left = min(limits.memory_bytes_max, grown)

    def take(self, count: int, item_bytes: int = 8) -> None:
        """Ask for an array of ``count`` items."""
        self._left -= count * item_bytes
        if self._left < 0:
            raise SummaryError(f"a summary needs {-self._left} bytes more memory than it may take")


class Writer:
    """Appends fields to a message."""

    def __init__(self) -> None:
        self.data = bytearray()

    def record(self, record: Any) -> None:
        """Append the fields of a record of `layout`."""
        for name, coding in CODINGS[type(record)].items():
            getattr(self, coding.value)(getattr(record, name))

    def number(self, number: int) -> None:
        self.data += _varint(number)

    def numbers(self, numbers: I64) -> None:
        self.number(len(numbers))
        self.column(numbers)

    def ascending(self, numbers: I64) -> None:
        self.number(len(numbers))
        if len(numbers):
            first = int(numbers[0])
            self.number(2 * first if first >= 0 else -2 * first - 1)
            self.column(np.diff(numbers))

    def floats(self, floats: F64) -> None:
        self.number(len(floats))
        self.data += floats.astype("<f8").tobytes()

    def texts(self, texts: tuple[str, ...]) -> None:
        encoded = [text.encode() for text in texts]
        shared = [_shared_bytes(a, b) for a, b in zip([b"", *encoded], encoded, strict=False)]
        own = [text[length:] for text, length in zip(encoded, shared, strict=True)]
        self.number(len(texts))
        self.column(np.array(shared, np.int64))
        self.column(np.array([len(each) for each in own], np.int64))
        self.data += b"".join(own)

    def column(self, numbers: I64) -> None:
        if len(numbers) <= 1:
            self.data += b"".join(map(_varint, numbers.tolist()))
            return
        base = int(numbers.min())
        width = (int(numbers.max()) - base).bit_length()
        sizes = varint_sizes(numbers)
        if _packed_bytes(base, width, len(numbers)) <= int(sizes.sum()):
            self.data.append(width)
            self.number(base)
            self.data += _packed(numbers - base, width).tobytes()
        else:
            self.data.append(VARINTS)
            self.data += _varints(numbers, sizes).tobytes()


class Reader:
    """Reads fields of a message, from ``position`` on."""

    def __init__(self, data: bytes, position: int, allowance: Allowance) -> None:
        self._data = data
        self.position = position
        self.allowance = allowance

    def record(self, form: type[_Record]) -> _Record:
        """Read the fields of a record of `layout`."""
        return form(**{n: getattr(self, coding.value)() for n, coding in CODINGS[form].items()})

    def malformed(self, what: str) -> SummaryError:
        return SummaryError(f"the bytes of a summary are malformed at {self.position}: {what}")

    def indexes(self, numbers: I64, count: int) -> I64:
        """Check that ascending numbers are indexes of ``count`` things, each at most once."""
        if len(numbers) and not 0 <= int(numbers[0]) <= int(numbers[-1]) < count:
            raise self.malformed("an index has nothing that it refers to")
        if np.any(numbers[1:] == numbers[:-1]):
            raise self.malformed("an index is listed twice")
        return numbers

    def end(self) -> None:
        """Check that nothing is left."""
        if self.position != len(self._data):
            raise self.malformed("bytes follow the last table")

    def number(self) -> int:
        number = 0
        for i, byte in enumerate(self._peek(VARINT_BYTES_MAX)):
            number |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                if byte == 0 and i:
                    raise self.malformed("a varint is longer than it needs to be")
                self.position += i + 1
                return number
        raise self.malformed("a varint does not end")

    def numbers(self) -> I64:
        return self.column(self.number())

    def ascending(self) -> I64:
        count = self.number()
        if count == 0:
            return np.zeros(0, np.int64)
        zigzag = self.number()
        first = -(zigzag // 2) - 1 if zigzag % 2 else zigzag // 2
        # A sum that overflows is negative, so the numbers are not ascending then.
        numbers: I64 = np.cumsum(np.concatenate(([first], self.column(count - 1))))
        if np.any(numbers[1:] < numbers[:-1]):
            raise self.malformed("a number exceeds 63 bits")
        return numbers

    def floats(self) -> F64:
        count = self.number()
        floats = np.frombuffer(self.raw(8 * count), "<f8").astype(np.float64)
        if np.any(np.isnan(floats)):
            raise self.malformed("a bound is NaN")
        return floats

    def texts(self) -> tuple[str, ...]:
        count = self.number()
        shared, own = self.column(count), self.column(count)
        # As Python's integers, which do not overflow.
        ends = list(accumulate(own.tolist()))
        self.allowance.take(count, _TEXT_BYTES)
        self.allowance.take(sum(shared.tolist()) + sum(own.tolist()), 1)
        blob = self.raw(ends[-1] if ends else 0)
        texts: list[str] = []
        before, start = b"", 0
        for length, end in zip(shared.tolist(), ends, strict=True):
            if length > len(before):
                raise self.malformed("a text shares more than the text before it has")
            encoded = before[:length] + blob[start:end]
            try:
                texts.append(encoded.decode())
            except UnicodeDecodeError:
                raise self.malformed("a text is not valid UTF-8") from None
            before, start = encoded, end
        return tuple(texts)

    def column(self, count: int) -> I64:
        # The numbers themselves, and room for what is computed from them.
        self.allowance.take(count, 3 * 8)
        if count <= 1:
            return np.array([self.number() for _ in range(count)], np.int64)
        (width,) = self.raw(1)
        if width > VARINTS:
            raise self.malformed(f"no column has the form {width}")
        numbers = self._varints(count) if width == VARINTS else self._packed(count, width)
        base, most = int(numbers.min()), int(numbers.max())
        tight = (most - base).bit_length()
        packed = _packed_bytes(base, tight, count) <= int(varint_sizes(numbers).sum())
        if packed != (width < VARINTS) or (packed and width != tight):
            raise self.malformed("a column has a shorter form")
        return numbers

    def _packed(self, count: int, width: int) -> I64:
        base = self.number()
        packed = np.frombuffer(self.raw(-(-count * width // 8)), np.uint8)
        self.allowance.take(len(packed), 8)
        bits = np.unpackbits(packed, bitorder="little")
        if np.any(bits[count * width :]):
            raise self.malformed("bits after the last number are set")
        columns = bits[: count * width].reshape(count, width)
        numbers = np.zeros(count, np.int64)
        for i in range(width):
            numbers |= columns[:, i].astype(np.int64) << i
        if int(numbers.max()) + base > NUMBER_MAX:
            raise self.malformed("a number exceeds 63 bits")
        if int(numbers.min()) > 0:
            raise self.malformed("the base of a column is not its least number")
        return numbers + base

    def _varints(self, count: int) -> I64:
        window = np.frombuffer(self._peek(count * VARINT_BYTES_MAX), np.uint8)
        self.allowance.take(len(window), 9)
        ends = np.flatnonzero(window < 0x80)[:count]
        if len(ends) < count:
            raise self.malformed("a varint does not end")
        starts = np.concatenate(([0], ends[:-1] + 1))
        sizes = ends + 1 - starts
        if int(sizes.max()) > VARINT_BYTES_MAX:
            raise self.malformed("a varint does not end")
        if np.any((window[ends] == 0) & (sizes > 1)):
            raise self.malformed("a varint is longer than it needs to be")
        numbers = np.zeros(count, np.int64)
        for i in range(int(sizes.max())):
            longer = np.flatnonzero(sizes > i)
            bits = (window[starts[longer] + i] & 0x7F).astype(np.int64)
            numbers[longer] |= bits << (7 * i)
        self.position += int(ends[-1]) + 1
        return numbers

    def _peek(self, most: int) -> bytes:
        return self._data[self.position : min(len(self._data), self.position + most)]

    def raw(self, count: int) -> bytes:
        """The next bytes, of which there must be as many."""
        if count > len(self._data) - self.position:
            raise self.malformed("the message ends too early")
        self.position += count
        return self._data[self.position - count : self.position]


def varint_sizes(numbers: I64) -> I64:
    """How many bytes each number takes as a varint.

    >>> varint_sizes(np.array([0, 127, 128, 2**62])).tolist()
    [1, 1, 2, 9]
    """
    sizes = np.ones(len(numbers), np.int64)
    for i in range(1, VARINT_BYTES_MAX):
        sizes += numbers >= 1 << (7 * i)
    return sizes


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _varints(numbers: I64, sizes: I64) -> U8:
    starts = np.cumsum(sizes) - sizes
    encoded = np.zeros(int(sizes.sum()), np.uint8)
    for i in range(int(sizes.max())):
        longer = np.flatnonzero(sizes > i)
        more = np.where(sizes[longer] > i + 1, 0x80, 0)
        encoded[starts[longer] + i] = (numbers[longer] >> (7 * i)) & 0x7F | more
    return encoded


def _packed(numbers: I64, width: int) -> U8:
    bits = np.empty((len(numbers), width), np.uint8)
    for i in range(width):
        bits[:, i] = (numbers >> i) & 1
    return np.packbits(bits, bitorder="little")


def _packed_bytes(base: int, width: int, count: int) -> int:
    """The size of a packed column after its first byte."""
    return -(-max(1, base.bit_length()) // 7) + -(-count * width // 8)


def _shared_bytes(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their starts.

    As big integers, because a hostile message has many long texts that are nearly equal, and a loop
    over their bytes would take seconds.
    """
    count = min(len(one), len(other))
    differing = int.from_bytes(one[:count]) ^ int.from_bytes(other[:count])
    return count - -(-differing.bit_length() // 8)
