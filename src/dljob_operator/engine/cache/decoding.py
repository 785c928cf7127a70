"""Decode the lists and the watch events of one kind.

Of an owned object the cache keeps a quarter. msgspec skips the rest, `managedFields` most of all, without making
objects of it: the event of a pod takes it 15 us, and the standard library 50.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.json_codec import loads, msgspec

from dljob_operator.engine.cache.transforms import METADATA

_OF_STATUSES = ("code", "reason", "message")
"""Of the object of an event that says why a watch ends."""


@dataclass(frozen=True)
class Decoding:
    """Both raise ValueError and RecursionError as `json_codec.loads`."""

    event: Callable[[bytes], Any] = loads
    page: Callable[[bytes], Any] = loads


WHOLE = Decoding()


def decoding_of(fields: Mapping[str, Any]) -> Decoding:
    """Return a decoding that leaves out what `transforms.owned(fields)` drops; without msgspec it decodes all."""
    if msgspec is None:
        return WHOLE
    kept = {"metadata": dict.fromkeys(METADATA, True), **fields}
    event = {"type": True, "object": {**dict.fromkeys(_OF_STATUSES, True), **kept}}
    return Decoding(_reduced(event), _reduced({"metadata": True, "items": kept}))


def _reduced(fields: Mapping[str, Any]) -> Callable[[bytes], Any]:
    decode = msgspec.json.Decoder(_type("Document", fields)).decode

    def reduced(data: bytes) -> Any:
        try:
            return msgspec.to_builtins(decode(data))
        except msgspec.DecodeError:  # a field is none of the types that it has in Kubernetes
            return loads(data)

    return reduced


def _type(name: str, fields: Mapping[str, Any]) -> Any:
    """A type with those of `fields` that an object has, in the notation of `OwnedKind.cached`."""
    unset = msgspec.field(default=msgspec.UNSET)
    types = {key: Any if below is True else _below(key, below) for key, below in fields.items()}
    return msgspec.defstruct(name, [(key, type_, unset) for key, type_ in types.items()], gc=False)


def _below(name: str, fields: Mapping[str, Any]) -> Any:
    one: Any = _type(name, fields)
    return one | list[one] | None | msgspec.UnsetType
