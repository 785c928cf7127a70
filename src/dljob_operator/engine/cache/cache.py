"""The cache of one kind's objects, indexed by name, by UID and by owner; pods of batch Jobs also by their job."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.shared.batch_job_pods import labelled_job

from dljob_operator.engine.cache.packing import Packed, Packing
from dljob_operator.engine.cache.predicates import Change, owner_uid, uid_of
from dljob_operator.engine.cache.transforms import Object

_Name = tuple[str, str]
_Owner = tuple[str, str]
"""A UID, and the namespace of what it controls. Anyone may write a reference to it, or a label, elsewhere."""


@dataclass(slots=True)
class _Record:
    """One object, and the keys under which it is found. Only the thread that changes the store changes a record."""

    name: _Name
    uid: str
    owner: _Owner | None
    job: _Owner | None
    """Of a pod that a batch Job controls: the job in its label."""
    packed: Packed

    def has_keys_of(self, other: _Record) -> bool:
        return (self.name, self.uid, self.owner, self.job) == (other.name, other.uid, other.owner, other.job)


Listed = Mapping[_Name, _Record]
"""Packed objects by their namespaces and names."""


class _Index:
    """Records by a key that several may have. Its owner locks; one read of a dictionary needs no lock."""

    def __init__(self) -> None:
        self._found: dict[_Owner, dict[_Name, _Record]] = {}

    def of(self, key: _Owner) -> Mapping[_Name, _Record]:
        return self._found.get(key, {})

    def keys(self) -> Iterable[_Owner]:
        return self._found.keys()

    def add(self, key: _Owner | None, record: _Record) -> None:
        if key is not None:
            self._found.setdefault(key, {})[record.name] = record

    def drop(self, key: _Owner | None, record: _Record) -> None:
        if key is not None:
            siblings = self._found[key]
            del siblings[record.name]
            if not siblings:
                del self._found[key]


class Store:
    """Holds transformed objects. It is safe to use from several threads, of which one changes it; callers must not
    change what it returns. `packing` is how it keeps them."""

    def __init__(self, packing: Packing | None = None) -> None:
        self._packing = packing or Packing()
        self._lock = threading.Lock()
        self._by_name: dict[_Name, _Record] = {}
        self._by_uid: dict[str, _Record] = {}
        self._by_owner = _Index()
        self._by_job = _Index()

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, uid: str) -> Object | None:
        with self._lock:
            record = self._by_uid.get(uid)
        return None if record is None else self._object(record)

    def name_of(self, uid: str) -> tuple[str, str] | None:
        """Return the namespace ("" for none) and the name of an object, for which nothing is unpacked."""
        record = self._by_uid.get(uid)
        return None if record is None else record.name

    def owned(self, uid: str, namespace: str) -> Sequence[Object]:
        """Return the objects that the object `uid` controls in a namespace ("" for none), sorted by name."""
        with self._lock:
            owned = self._by_owner.of((uid, namespace))
            records = [owned[name] for name in sorted(owned)]
        return self._packing.unpack_all(record.packed for record in records)

    def labelled(self, job: str, namespace: str, others: Set[str]) -> Sequence[Object]:
        """Return the pods in a namespace that a batch Job controls, none with the UID of one of the `others`, and whose
        label names the job, sorted by name."""
        with self._lock:
            found = self._by_job.of((job, namespace))
            records = [found[name] for name in sorted(found)]
        return self._packing.unpack_all(
            record.packed for record in records if record.owner is None or record.owner[0] not in others
        )

    def owners(self) -> list[tuple[str, str]]:
        """Return the UIDs of all controllers, each with the namespaces of the objects that it controls, sorted."""
        with self._lock:
            return sorted(self._by_owner.keys())

    def all(self) -> Iterator[Object]:
        """Yield all objects, sorted by name: of those that there are now each as it is when its turn comes."""
        with self._lock:
            records = [self._by_name[name] for name in sorted(self._by_name)]
        return map(self._object, records)

    def count(self, uid: str, namespace: str) -> int:
        """Return how many objects the object `uid` controls in a namespace ("" for none).

        One read of a dictionary needs no lock, and the queue, which asks this of many jobs, must not wait for a list.
        """
        return len(self._by_owner.of((uid, namespace)))

    def count_labelled(self, job: str, namespace: str) -> int:
        """Return how many pods in a namespace batch Jobs control whose label names the job, likewise."""
        return len(self._by_job.of((job, namespace)))

    def put(self, obj: Object) -> list[Change]:
        """Store an added or changed object.

        If it has the name of a stored object with another UID, that one's deletion was missed and is the first change.
        """
        record = self._record(obj)
        with self._lock:
            replaced = self._put(record)
        if replaced is not None and replaced.uid != record.uid:
            return [self._change(replaced, None), Change(None, obj)]
        return [self._change(replaced, obj)]

    def remove(self, obj: Object) -> Change:
        """Remove a deleted object; `obj` is its last state."""
        with self._lock:
            known = self._by_name.get(_name(obj))
            # Another object may have this name already.
            if known is not None and known.uid == uid_of(obj):
                self._drop(known)
            return Change(obj, None)

    def packed(self, objs: Iterable[Object]) -> Listed:
        """Return what `replace` takes. Each object is packed before the next one is read: of a list of all pods only
        one page is in memory as dictionaries."""
        return {record.name: record for record in map(self._record, objs)}

    def replace(self, listed: Listed) -> Iterator[Change]:
        """Replace all objects by those `listed` and return the changes, deletions first. A change is unpacked when it
        is read."""
        with self._lock:
            gone = [
                record for name, record in self._by_name.items() if name not in listed or listed[name].uid != record.uid
            ]
            for record in gone:
                self._drop(record)
            replaced = [(self._put(record), record) for record in listed.values()]
        deletions = (self._change(record, None) for record in gone)
        return itertools.chain(deletions, (self._change(old, self._object(record)) for old, record in replaced))

    def _change(self, old: _Record | None, new: Object | None) -> Change:
        return Change(None if old is None else self._object(old), new)

    def _record(self, obj: Object) -> _Record:
        name, owner, job = _name(obj), owner_uid(obj), labelled_job(obj)
        return _Record(
            name,
            uid_of(obj),
            None if owner is None else (owner, name[0]),
            None if job is None else (job, name[0]),
            self._packing.pack(obj),
        )

    def _object(self, record: _Record) -> Object:
        return self._packing.unpack(record.packed)

    def _put(self, record: _Record) -> _Record | None:
        """Store a record, and return what its name had before."""
        known = self._by_name.get(record.name)
        old = None if known is None else copy.copy(known)
        if known is not None:
            if known.has_keys_of(record):
                known.packed = record.packed
                return old
            self._drop(known)
        sibling = next(iter(self._by_owner.of(record.owner).values()), None) if record.owner else None
        if sibling is not None and sibling.owner is not None:  # share its strings
            record.owner, record.name = sibling.owner, (sibling.owner[1], record.name[1])
        self._by_name[record.name] = record
        self._by_uid[record.uid] = record
        self._by_owner.add(record.owner, record)
        self._by_job.add(record.job, record)
        return old

    def _drop(self, record: _Record) -> None:
        del self._by_name[record.name]
        del self._by_uid[record.uid]
        self._by_owner.drop(record.owner, record)
        self._by_job.drop(record.job, record)


def _name(obj: Object) -> _Name:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
