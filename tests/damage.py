"""Damaged files, drawn: bytes that were changed, cut or moved, and JSON whose values are of other types."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

LIES = (0, 1, 7, 8, 2**16, 2**31 - 1, 2**31, 2**32, 2**53, 2**60, 2**63 - 1, 2**63, 2**64 - 1)
"""Lengths and counts that a file may claim."""

ODD: tuple[Any, ...] = (None, True, False, -1, 0, 0.5, 2**31, 2**60, 2**70, -(2**63), 1e308, -1e-308)
ODD += (float("nan"), float("inf"), "", "a", "osd", "nan", "\x00", "\ud800", "../..", "x" * 300, [], {}, [[]], [None])
ODD += ({"a": 1}, [1, 2, 3], ["a"], [-1], [2**60] * 3, {"": {}}, [[["a"] * 3] * 3] * 3)

ABOUT = "cascaded"
"""Under which the metadata of most files have what they are about."""

DEEP = b"[" * 200_000
"""Nested deeper than a parser recurses."""


def changed(content: bytes) -> st.SearchStrategy[bytes]:
    """A file's bytes with one or a few damages, each of any kind."""
    return st.lists(_damages(), min_size=1, max_size=3).map(lambda damages: _applied(content, damages))


def _damages() -> st.SearchStrategy[tuple[Any, ...]]:
    place, few = st.floats(0, 1), st.integers(1, 64)
    return st.one_of(
        st.tuples(st.just("flip"), place, st.integers(0, 7)),
        st.tuples(st.just("flip"), st.sampled_from([0.0, 1e-4, 1e-3, 1e-2]), st.integers(0, 7)),
        st.tuples(st.just("cut"), place),
        st.tuples(st.just("insert"), place, st.binary(min_size=1, max_size=32)),
        st.tuples(st.just("delete"), place, few),
        st.tuples(st.just("repeat"), place, st.integers(1, 4096)),
        st.tuples(st.just("zero"), place, st.integers(1, 4096)),
        st.tuples(st.just("swap"), place),
        st.tuples(st.just("begin"), st.sampled_from(LIES).map(lambda each: each.to_bytes(8, "little"))),
        st.tuples(st.just("replace"), place, st.sampled_from(LIES).map(lambda each: each.to_bytes(8, "little"))),
        st.tuples(st.just("whole"), st.binary(max_size=64)),
        st.tuples(st.just("deep")),
    )


def _applied(content: bytes, damages: list[tuple[Any, ...]]) -> bytes:
    for kind, *how in damages:
        content = _damaged(content, kind, how)
    return content


def _damaged(content: bytes, kind: str, how: list[Any]) -> bytes:
    if kind in ("whole", "deep"):
        return how[0] if how else DEEP
    if kind == "begin":
        return how[0] + content[8:]
    at = min(int(how[0] * len(content)), max(0, len(content) - 1))
    before, after = content[:at], content[at:]
    if kind == "flip":
        return before + bytes([after[0] ^ (1 << how[1])]) + after[1:] if after else content
    if kind == "insert":
        return before + how[1] + after
    if kind == "delete":
        return before + after[how[1] :]
    if kind == "repeat":
        return before + after[: how[1]] + after
    if kind == "zero":
        return before + bytes(len(after[: how[1]])) + after[how[1] :]
    if kind == "replace":
        return before + how[1] + after[8:]
    return before if kind == "cut" else after + before  # swap


# --- JSON


def changed_json(data: Any) -> st.SearchStrategy[bytes]:
    """JSON that can be parsed, with values of other types, and keys that are missing, added or renamed."""
    change = st.tuples(st.integers(0, 2**32), st.sampled_from(["value", "delete", "rename", "add"]), _odd())
    return st.lists(change, min_size=1, max_size=3).map(lambda changes: as_bytes(with_changes(data, changes)))


def _odd() -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(ODD), st.integers(), st.floats(), st.text(max_size=5))


def as_bytes(data: Any) -> bytes:
    """JSON with whatever Python writes, such as NaN."""
    return json.dumps(data).encode()


def with_changes(data: Any, changes: list[tuple[int, str, Any]]) -> Any:
    """Some places of a tree, by number, changed each in its way."""
    box = [copy.deepcopy(data)]
    for number, kind, odd in changes:
        places = list(_places(box))
        holder, key = places[number % len(places)]
        odd = copy.deepcopy(odd)
        if kind == "value" or holder is box:
            holder[key] = odd
        elif kind == "delete":
            del holder[key]
        elif kind == "rename" and isinstance(holder, dict):
            holder[str(odd)[:20]] = holder.pop(key)
        elif isinstance(holder, dict):
            holder["more"] = odd
        else:
            holder.append(odd)
    return box[0]


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """All places that hold a value, in any depth."""
    for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
        yield holder, key
        if isinstance(value, (dict, list)):
            yield from _places(value)


# --- safetensors


def changed_header(content: bytes) -> st.SearchStrategy[bytes]:
    """A safetensors file whose header was changed and has the right length; JSON inside its metadata as well."""
    length = int.from_bytes(content[:8], "little")
    data, rest = json.loads(content[8 : 8 + length]), content[8 + length :]
    inner = {name: _parsed(text) for name, text in data.get("__metadata__", {}).items()}

    def packed(header: bytes) -> bytes:
        return len(header).to_bytes(8, "little") + header + rest

    def with_inner(change: list[tuple[int, str, Any]]) -> bytes:
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in inner.items()}
        held = with_changes({name: value for name, value in inner.items() if not isinstance(value, str)}, change)
        for name, value in held.items() if isinstance(held, dict) else [(ABOUT, held)]:
            texts[name] = value if isinstance(value, str) else json.dumps(value)
        return packed(as_bytes({**data, "__metadata__": texts}))

    whole = changed_json(data).map(packed)
    if all(isinstance(each, str) for each in inner.values()):
        return whole
    change = st.tuples(st.integers(0, 2**32), st.sampled_from(["value", "delete", "rename", "add"]), _odd())
    deep = {**data, "__metadata__": dict.fromkeys(data["__metadata__"], DEEP.decode())}
    made_deep = st.just("deep").map(lambda _: packed(as_bytes(deep)))
    return st.one_of(whole, st.lists(change, min_size=1, max_size=3).map(with_inner), made_deep)


def _parsed(text: str) -> Any:
    try:
        data = json.loads(text)
    except ValueError:
        return text
    return data if isinstance(data, dict) else text


def any_damage(content: bytes, kind: str) -> st.SearchStrategy[bytes]:
    """Every damage that is worth trying on a file of a kind: `json`, `safetensors`, or another."""
    ways = [changed(content)]
    if kind == "json":
        ways.append(changed_json(json.loads(content)))
    if kind == "safetensors":
        ways.append(changed_header(content))
    return st.one_of(ways)
