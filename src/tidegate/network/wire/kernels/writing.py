"""Writing the frames of many receivers at once.

Bytes are written one after the other, little endian, so that no alignment is needed. Nothing here
reads what a peer has sent but the bodies of events, whose places `EventBlock.decode` has checked.
"""

from __future__ import annotations

from tidegate.matching.arrays import I64, U8, Int
from tidegate.matching.rows.kernels.jit import inlined, kernel


@inlined
def _put_u32(out: U8, at: Int, value: Int) -> None:
    for byte in range(4):
        out[at + byte] = (value >> (8 * byte)) & 0xFF


@inlined
def _put_i64(out: U8, at: Int, value: Int) -> None:
    for byte in range(8):
        out[at + byte] = (value >> (8 * byte)) & 0xFF


@kernel
def write_deliveries(
    out: U8,
    begins: I64,
    receivers: I64,
    row_starts: I64,
    events: I64,
    match_starts: I64,
    matches: I64,
    columns: I64,
    shape_numbers: I64,
    body_starts: I64,
    bodies: U8,
) -> None:
    """Write the body of a `Deliver` for each receiver, after its head, at its place in ``out``.

    Receiver ``i`` is ``receivers[i]`` in ``row_starts``; its frame goes on at ``begins[i]``. A row
    is an event of a receiver. ``columns`` has for each event: index of the broker, number, index of
    the publisher, flags, index of the shape, time; ``matches`` has handles and versions;
    ``shape_numbers`` the numbers of the shapes on the connection of each receiver. ``out`` is zero
    where positions are, as receivers are not durable.
    """
    for index in range(len(receivers)):
        first, last = row_starts[receivers[index]], row_starts[receivers[index] + 1]
        count, at = last - first, begins[index]
        _put_u32(out, at, count)
        at += 4
        for row in range(first, last):
            event, place = events[row], row - first
            _put_u32(out, at + 4 * place, columns[0, event])
            _put_i64(out, at + 4 * count + 8 * place, columns[1, event])
            _put_u32(out, at + 12 * count + 4 * place, columns[2, event])
            out[at + 16 * count + place] = columns[3, event]
            found = match_starts[row + 1] - match_starts[row]
            _put_u32(out, at + 25 * count + 4 * place, found)
        at += 29 * count
        first_match, last_match = match_starts[first], match_starts[last]
        total = last_match - first_match
        _put_u32(out, at, total)
        at += 4
        for match in range(first_match, last_match):
            place = match - first_match
            _put_u32(out, at + 4 * place, matches[0, match])
            _put_i64(out, at + 4 * total + 8 * place, matches[1, match])
        at += 12 * total
        _put_u32(out, at, count)
        at += 4
        body = at + 16 * count
        for row in range(first, last):
            event, place = events[row], row - first
            _put_u32(out, at + 4 * place, shape_numbers[index, columns[4, event]])
            _put_i64(out, at + 4 * count + 8 * place, columns[5, event])
            begin, end = body_starts[event], body_starts[event + 1]
            _put_u32(out, at + 12 * count + 4 * place, end - begin)
            for byte in range(begin, end):
                out[body + byte - begin] = bodies[byte]
            body += end - begin
