"""Reading the bodies of events: MessagePack arrays of values, straight into columns.

These bytes come from outside. Rule: no byte is read before it is known to lie within its body; a
body that is not exactly one array of so many values, or has anything unusual in it, is left to the
decoder in Python, which reads it or says what is wrong with it.

A value becomes a kind and a number of 64 bits:

    kind    number
    BOOL    0 or 1
    INT     the integer
    FLOAT   the bits of the float
    STRING  the length in bytes; where it begins is in an array of its own
    TIME    microseconds since 1970
"""

from __future__ import annotations

from tidegate.matching.arrays import I64, U8, Int
from tidegate.matching.rows.kernels.jit import inlined, kernel

BOOL, INT, FLOAT, STRING, TIME = range(1, 6)


@inlined
def _big_endian(data: U8, at: Int, size: Int) -> Int:
    """An unsigned integer of up to 4 bytes, or the bits of one of 8."""
    value = 0
    for byte in range(size):
        value = (value << 8) | data[at + byte]
    return value


@inlined
def _continues(data: U8, at: Int, low: Int, high: Int) -> Int:
    return low <= data[at] <= high


@kernel
def _is_utf8(data: U8, begin: int, end: int) -> bool:
    """Whether bytes are UTF-8 without overlong forms and surrogates (Unicode, table 3-7)."""
    at = begin
    while at < end:
        first = data[at]
        if first < 0x80:
            at += 1
            continue
        if 0xC2 <= first <= 0xDF:
            size, low, high = 2, 0x80, 0xBF
        elif 0xE0 <= first <= 0xEF:
            size, low, high = 3, 0x80, 0xBF
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            size, low, high = 4, 0x80, 0xBF
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + size > end or not _continues(data, at + 1, low, high):
            return False
        for byte in range(2, size):
            if not _continues(data, at + byte, 0x80, 0xBF):
                return False
        at += size
    return True


@kernel
def read_bodies(
    data: U8,
    starts: I64,
    events: I64,
    times: I64,
    kinds: U8,
    numbers: I64,
    begins: I64,
) -> int:
    """Read the bodies of some events into arrays with a row for each; returns how many were read.

    The body of event ``e`` is ``data[starts[e] : starts[e + 1]]``; ``times`` are the first and the
    last timestamp that are allowed.
    """
    width = kinds.shape[1]
    for row in range(len(events)):
        at, end = starts[events[row]], starts[events[row] + 1]
        if at < 0 or end > len(data) or at >= end:
            return row
        head = data[at]
        at += 1
        if head == 0xDC and end - at >= 2:
            count = _big_endian(data, at, 2)
            at += 2
        elif 0x90 <= head <= 0x9F:
            count = head & 0x0F
        else:
            return row
        if count != width:
            return row
        for column in range(width):
            if at >= end:
                return row
            tag = data[at]
            at += 1
            room = end - at
            kind, size = 0, 0
            if tag <= 0x7F:
                kind, numbers[row, column] = INT, tag
            elif tag >= 0xE0:
                kind, numbers[row, column] = INT, tag - 256
            elif 0xA0 <= tag <= 0xBF or 0xD9 <= tag <= 0xDB:
                if tag <= 0xBF:
                    size = tag & 0x1F
                else:
                    width_of_size = 1 << (tag - 0xD9)
                    if room < width_of_size:
                        return row
                    size = _big_endian(data, at, width_of_size)
                    at += width_of_size
                    room -= width_of_size
                if room < size or not _is_utf8(data, at, at + size):
                    return row
                kind, numbers[row, column], begins[row, column] = STRING, size, at
            elif tag == 0xC2 or tag == 0xC3:
                kind, numbers[row, column] = BOOL, tag & 1
            elif tag == 0xCB:
                size = 8
                if room < size:
                    return row
                kind, numbers[row, column] = FLOAT, _big_endian(data, at, 8)
            elif 0xCC <= tag <= 0xCF:
                size = 1 << (tag - 0xCC)
                if room < size or (size == 8 and data[at] > 0x7F):
                    return row
                kind, numbers[row, column] = INT, _big_endian(data, at, size)
            elif 0xD0 <= tag <= 0xD3:
                size = 1 << (tag - 0xD0)
                if room < size:
                    return row
                value = _big_endian(data, at, size)
                if size < 8 and value >> (8 * size - 1):
                    value -= 1 << (8 * size)
                kind, numbers[row, column] = INT, value
            elif tag == 0xD7:
                size = 9
                if room < size or data[at] != 1:
                    return row
                value = _big_endian(data, at + 1, 8)
                if value < times[0] or value > times[1]:
                    return row
                kind, numbers[row, column] = TIME, value
            else:
                return row
            kinds[row, column] = kind
            at += size
        if at != end:
            return row
    return len(events)


@kernel
def gather(data: U8, begins: I64, sizes: I64, offsets: I64, out: U8) -> None:
    """Copy pieces of bytes, each to its offset; they have been read before by `read_bodies`."""
    for piece in range(len(begins)):
        begin, offset = begins[piece], offsets[piece]
        for byte in range(sizes[piece]):
            out[offset + byte] = data[begin + byte]
