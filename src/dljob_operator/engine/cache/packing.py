"""How a cache keeps its objects in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from dljob_operator.engine.cache.string_pool import StringPool
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.json_texts import JsonTexts, text_of


class Packing(Protocol):
    """One thread packs, any thread unpacks."""

    def pack(self, obj: Object) -> Any: ...

    def unpack(self, packed: Any) -> Object: ...

    def unpack_all(self, packed: Iterable[Any]) -> Sequence[Object]: ...


class AsText:
    """As JSON texts, for owned objects: a run gets the text, and the engine itself hardly reads them.

    As a dictionary a pod takes 4 KiB more, and Python's garbage collector visits each part of it again and again.
    """

    def pack(self, obj: Object) -> str:
        return text_of(obj)

    def unpack(self, packed: str) -> Object:
        obj: Object = json.loads(packed)
        return obj

    def unpack_all(self, packed: Iterable[str]) -> JsonTexts:
        return JsonTexts(packed)


class AsDict:
    """As dictionaries that share equal strings, for what the engine reads at each event."""

    def __init__(self) -> None:
        self._strings = StringPool()

    def pack(self, obj: Object) -> Object:
        return self._strings.sharing(obj)

    def unpack(self, packed: Object) -> Object:
        return packed

    def unpack_all(self, packed: Iterable[Object]) -> list[Object]:
        return list(packed)
