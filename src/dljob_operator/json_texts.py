"""A list of objects as JSON texts.

As dictionaries they would take several times the memory, and an encoder would have to encode them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class JsonTexts(Sequence[Any]):
    """Decodes an object each time that it is read. It equals any list of equal objects."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)

    @classmethod
    def joined(cls, *lists: Iterable[Any]) -> JsonTexts:
        """All objects of `lists`, of which each may be of texts."""
        return cls(text for objs in lists for text in (objs.texts if isinstance(objs, cls) else map(text_of, objs)))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> JsonTexts: ...
    def __getitem__(self, index: int | slice) -> Any:
        return JsonTexts(self.texts[index]) if isinstance(index, slice) else _loads()(self.texts[index])

    def __iter__(self) -> Iterator[Any]:
        return map(_loads(), self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __repr__(self) -> str:
        return f"JsonTexts({list(self.texts)!r})"


def _loads() -> Callable[[str], Any]:
    # only here: the fork server imports this module before Ansible's own loader of collections is in place
    from ansible_collections.dljob.operator.plugins.module_utils.shared.json_codec import loads

    return loads
