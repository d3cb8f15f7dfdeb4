"""The wire form of summaries: one message for a whole summary or for what changed in it.

`encode` and `decode`, `encode_difference` and `apply_difference` are all that other modules need.
"""

from tidegate.matching.summary.wire.columns import WireLimits
from tidegate.matching.summary.wire.messages import (
    apply_difference,
    decode,
    digest,
    encode,
    encode_difference,
)

__all__ = [
    "WireLimits",
    "apply_difference",
    "decode",
    "digest",
    "encode",
    "encode_difference",
]
