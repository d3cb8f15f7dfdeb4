"""The wire protocol, without I/O: bytes to messages and messages to bytes.

`docs/protocol.md` is the normative description; `connection.Connection` is where to begin reading.
"""
