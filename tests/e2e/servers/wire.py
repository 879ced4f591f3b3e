"""Protobuf messages by field number: no compiler of protos, no generated code."""


def message(fields):
    """The bytes of a message. An embedded message is given as its bytes.

    A list is a repeated field, a dict a map of strings. None is left out, as is what is empty or
    zero, in the way of proto3.
    """
    return b"".join(field(number, value) for number, value in fields.items() if value)


def field(number, value):
    if isinstance(value, list):
        return b"".join(field(number, each) for each in value)
    if isinstance(value, dict):
        return field(number, [message({1: key, 2: each}) for key, each in value.items()])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def varint(value):
    value &= (1 << 64) - 1
    raw = bytearray()
    while value > 0x7f:
        raw.append(value & 0x7f | 0x80)
        value >>= 7
    raw.append(value)
    return bytes(raw)


def fields(raw):
    """The values of a message by field number, each a list: numbers as int, all else as bytes."""
    found, at = {}, 0
    while at < len(raw):
        key, at = read_varint(raw, at)
        value, at = read_varint(raw, at)
        if key & 7 == 2:
            at += value
            value = raw[at - value:at]
        elif key & 7 != 0:
            raise ValueError(f"wire type {key & 7} of field {key >> 3}")
        found.setdefault(key >> 3, []).append(value)
    return found


def text(raw, number):
    """A string field, '' if absent."""
    return fields(raw).get(number, [b""])[-1].decode()


def text_map(raw, number):
    return {text(entry, 1): text(entry, 2) for entry in fields(raw).get(number, [])}


def read_varint(raw, at):
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
