"""A part of the index: its arrays, their memory layout, and their packed form for the kernels.

A part holds entries, sorted by cluster. Everything about it is in flat arrays, so that a snapshot
maps them from a file as they are, and a kernel reads them without any Python object. The tables
below are the only declaration of these layouts; who writes and who reads both use their constants.

An entry is ENTRY_WORDS numbers of 32 bits, so that one cache line has all of them:

    word             meaning
    E_SUBSCRIPTION   number of its subscription
    E_FLAGS          DEAD, VERIFY, SHARED, MOVING, GONE
    E_FIRST          number of its first constraint; its last one ends where the next entry's begin
    E_MOTION         place of its motion in the array of motions (see motion.py), ends likewise

After the last entry follows one more, of which only E_FIRST and E_MOTION count: the ends of the
last real one.

A constraint is BOUND_WORDS words of 64 bits, because a check needs all of them:

    word        bits     meaning
    B_LOW       0..63    lower bound, a float
    B_HIGH      0..63    upper bound, a float
    B_CHANNEL   0..31    channel, an integer, SET among its bits
                32..63   margin, a float of 32 bits (see envelopes.py); 0 if the bounds do not move

Constraints that are the key of an entry's cluster are not among them: the hash probe has checked
them already. ``take_out`` in layout.py puts them back.

Bitmaps of a cluster, for each of its bitmap channels (``map_...``), of `bins + 1` rows, with a bit
for each entry of the cluster:

    row       word 0               word 1              ...    (entries + 63) // 64 words
    bin 0     entries 0..63        entries 64..127            values below the first edge
    bin 1     ...                                             from edge 0 to below edge 1
    ...
    bin n-1                                                   from the last edge on
    row n                                                     events without a value
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.rows.kernels.jit import inlined

# -- entries and constraints ----------------------------------------------------------------------

E_SUBSCRIPTION, E_FLAGS, E_FIRST, E_MOTION, ENTRY_WORDS = range(5)
"""The words of an entry, and how many there are."""

B_LOW, B_HIGH, B_CHANNEL, BOUND_WORDS = range(4)
"""The words of a constraint, and how many there are."""

CHANNEL_MASK = 0xFFFFFFFF
"""The bits of B_CHANNEL that are the channel; the others are the margin."""

EMPTY_SLOT = np.int32(-1)
"""Sentinel in ``slot_cluster``: no cluster is hashed to this slot."""

PROBES = 2
"""How many constraints of an entry have a short form, which is checked before the entry is read.

Two make a load of 16 bytes of bounds an entry. Of the 1,800 entries that an event of the workload
`wide` visits, they leave 50 to be read whole.
"""


@inlined
def margin_at(bound: Int) -> Int:
    """Index of a constraint's margin, in the view of the same memory as floats of 32 bits.

    ``bound`` is the index of the constraint's first word. The upper half of a word is the second
    one in memory, as on every little-endian machine; Numba is not built for others.
    """
    return 2 * (bound + B_CHANNEL) + 1


# -- fields ---------------------------------------------------------------------------------------

# The fields are declared once, with a type variable for each type of element. From that follow
#
# - Part, with an array for each type variable, which mypy checks;
# - BEGIN and END, with an integer for each, which are constants for Numba;
# - `pack`, which joins the fields of one type variable to one array.
#
# A new field is one line here, plus who writes it in layout.py.
_I32 = TypeVar("_I32")
_I64 = TypeVar("_I64")
_F32 = TypeVar("_F32")
_F64 = TypeVar("_F64")
_U64 = TypeVar("_U64")
_U8 = TypeVar("_U8")


class PartFields(NamedTuple, Generic[_I32, _I64, _F32, _F64, _U64, _U8]):
    """The fields of a part. ``..._first`` has one element more than there are things: the end."""

    # entries, cluster by cluster
    entry: _I32  # ENTRY_WORDS for each, and one more at the end
    probe_channel: _I32  # PROBES for each: the channels of its first constraints
    probe: _F32  # two bounds for each of them, rounded outwards; NaN: nothing to check
    bound: _F64  # BOUND_WORDS for each constraint
    # groups: sets of channels, the values of which select a cluster
    group_first: _I32  # where the channels of a group begin
    group_channel: _I32
    group_salt: _U64  # what the hash of a key begins with
    # an open hash table with linear probing, from the key of a cluster to the cluster
    slot_hash: _U64
    slot_cluster: _I32  # EMPTY_SLOT where there is none
    # clusters: entries of one group with the same key
    cluster_first: _I32  # where the entries of a cluster begin
    cluster_group: _I32
    cluster_key: _I32  # where its key begins in key_value
    cluster_dense: _U8  # 1 if few words of its bitmaps are zero, see bitmaps.py
    key_value: _F64
    # bitmaps: for each cluster its bitmap channels, the most selective first
    map_first: _I32  # where the bitmap channels of a cluster begin
    map_channel: _I32
    map_bins: _I32
    map_edge: _I32  # where the edges between its bins begin, one fewer than bins
    map_word: _I64  # where its bitmaps begin; 64 bits, because all bitmaps together may be large
    edge: _F64
    word: _U64
    # spans: for each bin of a cluster's first bitmap channel, which words of its bitmap have bits
    span_first: _I32
    span_last: _I32  # the one after the last
    span_start: _I32  # where the spans of a cluster begin
    # functions of time
    motion: _F64  # see motion.py
    program: _I32  # see programs.py


FIELDS = len(PartFields._fields)

BEGIN: PartFields[int, int, int, int, int, int] = PartFields(*range(0, 2 * FIELDS, 2))
END: PartFields[int, int, int, int, int, int] = PartFields(*range(1, 2 * FIELDS, 2))
"""Positions in ``PackedPart.at``: of where a field begins, and of where it ends.

Numba takes a global tuple of integers for constants, so ``part.at[BEGIN.entry]`` is one load.
"""


class Part(PartFields[I32, I64, F32, F64, U64, U8]):
    """A part of the index, as arrays."""

    __slots__ = ()

    @property
    def entries(self) -> int:
        """The number of entries, those that are gone included."""
        return len(self.entry) // ENTRY_WORDS - 1

    @property
    def needs_lookup(self) -> bool:
        """Whether it is not just one cluster without bitmaps, which every event falls into."""
        return not (
            len(self.cluster_first) == 2
            and len(self.group_first) == 2
            and len(self.group_channel) == len(self.map_channel) == 0
        )

    @property
    def subscription(self) -> I32:
        """The number of the subscription of each entry."""
        return self._entry_column(E_SUBSCRIPTION)[:-1]

    @property
    def flags(self) -> I32:
        """The flags of each entry."""
        return self._entry_column(E_FLAGS)[:-1]

    @property
    def first(self) -> I32:
        """Where the constraints of each entry begin, and where the last one's end."""
        return self._entry_column(E_FIRST)

    @property
    def motion_first(self) -> I32:
        """Where the motion of each entry begins, and where the last one's ends."""
        return self._entry_column(E_MOTION)

    @property
    def low(self) -> F64:
        """The lower bound of each constraint."""
        return self._bound_column(B_LOW)

    @property
    def high(self) -> F64:
        """The upper bound of each constraint."""
        return self._bound_column(B_HIGH)

    @property
    def channel(self) -> I64:
        """The channel of each constraint."""
        return self._bound_column(B_CHANNEL).view(np.int64) & CHANNEL_MASK

    def _entry_column(self, word: int) -> I32:
        return self.entry.reshape(-1, ENTRY_WORDS)[:, word]

    def _bound_column(self, word: int) -> F64:
        return self.bound.reshape(-1, BOUND_WORDS)[:, word]


def entry_words(subscription: I32, flags: I32, first: I32, motion_first: I32) -> I32:
    """The field ``entry`` of a part."""
    # offsets have an element more than there are entries, which makes the one more entry at the end
    words = np.zeros((len(first), ENTRY_WORDS), np.int32)
    words[:-1, E_SUBSCRIPTION] = subscription
    words[:-1, E_FLAGS] = flags
    words[:, E_FIRST] = first
    words[:, E_MOTION] = motion_first
    return words.ravel()


def bound_words(low: F64, high: F64, channel: I32) -> F64:
    """The field ``bound`` of a part, with margins of 0."""
    # the lower half of B_CHANNEL is the channel, the upper half 0: the bits of a margin of 0.0
    words = np.empty((len(low), BOUND_WORDS))
    words[:, B_LOW], words[:, B_HIGH] = low, high
    words.view(np.int64)[:, B_CHANNEL] = channel
    return words.ravel()


# -- packed parts ---------------------------------------------------------------------------------


# How a part is handed to a kernel was measured:
#
# - From Python, Numba looks up the type of every argument, so there must be few: the fields of one
#   type are joined to one array, and a kernel is given the seven arrays one by one. With tuples of
#   arrays as arguments a call of `rewrite_entry` took 1.0 µs in place of 0.6, and looking up the
#   type of a named tuple takes 0.7 µs more.
# - Inside of ``lean`` kernels a PackedPart is free if what takes it is inlined: `enclose_entries`
#   took 30 % less time than with calls that are given arrays one by one. As an argument of a call
#   that is not inlined all seven arrays are copied to the stack, which made it 6 % slower.
# - Kernels that count references hand on arrays one by one: with tuples of a part, of events and of
#   results as arguments, matching a cluster took 2 to 5 % longer, inlined or not.


class PackedPart(NamedTuple):
    """A part as seven arrays: the form in which kernels take it.

    ``at`` has two positions for each field, where it begins and where it ends in the array of its
    type; BEGIN and END are the indexes into it.
    """

    at: I64
    i32: I32
    i64: I64
    f32: F32
    f64: F64
    u64: U64
    u8: U8


_ARRAY_OF_TYPE: dict[object, tuple[str, type[np.generic]]] = {
    _I32: ("i32", np.int32),
    _I64: ("i64", np.int64),
    _F32: ("f32", np.float32),
    _F64: ("f64", np.float64),
    _U64: ("u64", np.uint64),
    _U8: ("u8", np.uint8),
}
# get_type_hints, because annotations are strings here; it keeps the order of the fields
_ARRAY_OF_FIELD = tuple(_ARRAY_OF_TYPE[each][0] for each in get_type_hints(PartFields).values())


def pack(part: Part, room: Mapping[str, int] = MappingProxyType({})) -> PackedPart:
    """Join the fields of one type to one array.

    ``room`` says how many elements some fields may grow by: that many zeros follow them.
    """
    at = np.zeros(2 * FIELDS, np.int64)
    arrays: dict[str, Any] = {}
    for name, dtype in _ARRAY_OF_TYPE.values():
        fields = [index for index, array in enumerate(_ARRAY_OF_FIELD) if array == name]
        spare = [room.get(Part._fields[index], 0) for index in fields]
        lengths = np.array([len(part[index]) for index in fields])
        begins = np.cumsum([0, *(lengths + spare)])[:-1]
        at[[BEGIN[index] for index in fields]] = begins
        at[[END[index] for index in fields]] = begins + lengths
        pieces: list[npt.NDArray[Any]] = []
        for index, more in zip(fields, spare, strict=True):
            pieces.append(part[index])
            if more:
                pieces.append(np.zeros(more, dtype))
        arrays[name] = np.concatenate(pieces).astype(dtype)
    return PackedPart(at, **arrays)


def unpack(packed: PackedPart) -> Part:
    """The fields of a packed part, as views of its arrays: a write to one is seen in the other."""
    return Part(
        *(
            getattr(packed, name)[packed.at[begin] : packed.at[end]]
            for name, begin, end in zip(_ARRAY_OF_FIELD, BEGIN, END, strict=True)
        )
    )
