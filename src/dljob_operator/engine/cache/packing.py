"""How a cache keeps its objects in memory: as compressed JSON texts.

As a dictionary a pod takes ten times the memory, and Python's garbage collector visits each part of it again and again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from ansible_collections.dljob.operator.plugins.module_utils.shared.json_codec import dumps, loads

from dljob_operator.engine.cache.transforms import Object
from dljob_operator.json_texts import JsonTexts

SAMPLES = 16
"""Objects of which a packing learns what the others repeat. There are no more, since each makes a new dictionary, which
stays as long as an object that was packed with it."""
_POOR = 6
"""An object that gets less than this part smaller is a sample."""
_WINDOW_BITS = 13
_LONGEST_DICTIONARY = 1 << _WINDOW_BITS
_LONGEST_SAMPLE = _LONGEST_DICTIONARY // 2
"""Bytes; one object must not be all of the dictionary."""
_LEVEL, _MEMORY = 3, 5  # for the size and the time of a pod; a higher level takes half as long again


class Packed(NamedTuple):
    """An object."""

    data: bytes
    dictionary: bytes

    def text(self) -> str:
        return zlib.decompressobj(-_WINDOW_BITS, zdict=self.dictionary).decompress(self.data).decode()


class Packing:
    """Packs the objects of one kind, which resemble each other. One thread packs, any thread unpacks."""

    def __init__(self) -> None:
        self._dictionary = b""
        self._samples = 0

    def pack(self, obj: Object) -> Packed:
        text = dumps(obj)
        dictionary = self._dictionary
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -_WINDOW_BITS, _MEMORY, zdict=dictionary)
        packed = Packed(packer.compress(text) + packer.flush(), dictionary)
        if self._samples < SAMPLES and len(packed.data) * _POOR > len(text):
            self._samples += 1
            self._dictionary = (dictionary + text[-_LONGEST_SAMPLE:])[-_LONGEST_DICTIONARY:]
        return packed

    def unpack(self, packed: Packed) -> Object:
        obj: Object = loads(packed.text())
        return obj

    def unpack_all(self, packed: Iterable[Packed]) -> JsonTexts:
        return JsonTexts(one.text() for one in packed)
