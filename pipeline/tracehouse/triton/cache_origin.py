"""The comment above a kernel in a wrapper file: original ops, and its part of the graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tracehouse.triton.pointers import element_bytes


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph: its op, and the elements of its result, None if not said or dynamic."""

    op: str
    elements: int | None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor that the kernel reads or writes: bytes of an element, elements; None if unknown."""

    name: str
    bytes: int | None
    elements: int | None


@dataclass(frozen=True, slots=True)
class Origin:
    """What the comment says.

    kernel_hash: of the kernel's own file, None if the comment names none. ops: original ATen ops,
    None if there is no such line. nodes: calls of the graph after its decompositions, one an
    occurrence. reads, writes: the buffers, () if the comment does not list them.
    """

    kernel_hash: str | None = None
    ops: tuple[str, ...] | None = None
    nodes: tuple[Node, ...] = ()
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()

    def counts(self) -> dict[str, int]:
        """Return how often each op occurs in the graph."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            counts[node.op] = counts.get(node.op, 0) + 1
        return counts


class Block(NamedTuple):
    """A kernel as it stands in a wrapper: the variable, its text, the comment above it."""

    variable: str
    text: str
    origin: Origin


_START = re.compile(
    r"""^(\w+)\s*=\s*async_compile\.triton\(\s*['"][^'"\n]*['"]\s*,\s*r?(\"""|''')""",
    re.MULTILINE | re.ASCII,
)
_OTHER_END = re.compile(r"^(?:'''|\"\"\")", re.MULTILINE)
_PATH = re.compile(r"^# kernel path: (.+)$", re.MULTILINE)
_ORIGINAL = re.compile(r"Original ATen: \[([^\[\]\n]*)\]")
_NODE = re.compile(
    r'^#[ \t]+%(\w+) : (?:Tensor\s*)?(?:"([^"\n]*)")?\s*(?:\[num_users=\d+\])?\s*'
    r"= (PlaceHolder|call_function)\[target=([\w.]+)\]",
    re.MULTILINE | re.ASCII,
)
_RETURN = re.compile(r"^#[ \t]+return (%.*)$", re.MULTILINE)
_ANNOTATION = re.compile(r"(\w+)\[([^\]]*)\]", re.ASCII)
_LARGEST = 2**63 - 1
_LONGEST_SIZE = 18  # digits


def hash_of_file(path: str) -> str:
    """Return the hash that a kernel file is named by: `cab…` of `/tmp/x/ab/cab….py`."""
    return re.split(r"[\\/]", path)[-1].removesuffix(".py")


def is_wrapper(text: str) -> bool:
    """Whether a text defines kernels for `async_compile`."""
    return "async_compile.triton" in text and _START.search(text) is not None


def blocks(text: str) -> Iterator[Block]:
    """Yield the kernels that a wrapper defines."""
    position = 0
    while (start := _START.search(text, position)) is not None:
        end = text.find(start[2], start.end())
        if end < 0:
            return  # cut short
        above = text[position : start.start()]
        others = list(_OTHER_END.finditer(above))  # kernels of other languages
        if others:
            above = above[others[-1].end() :]
        yield Block(start[1], text[start.end() : end], _origin(above))
        position = end + len(start[2])


def _origin(above: str) -> Origin:
    paths = list(_PATH.finditer(above))
    originals = list(_ORIGINAL.finditer(above))
    kernel_hash = hash_of_file(paths[-1][1].strip()) if paths else None
    if not originals:
        return Origin(kernel_hash)
    original = originals[-1]
    ops = tuple(dict.fromkeys(_packet(op) for op in original[1].split(",") if op.strip()))
    nodes = []
    reads = []
    annotated: dict[str, Buffer] = {}
    for name, annotation, what, target in _NODE.findall(above, original.end()):
        buffer = _buffer(name, annotation)
        if what == "PlaceHolder":
            reads.append(buffer)
            annotated.setdefault(name, buffer)
            continue
        annotated[name] = buffer
        parts = target.split(".")
        if parts[:2] == ["torch", "ops"] and len(parts) > 3:
            nodes.append(Node(parts[3], buffer.elements))
    returned = _RETURN.search(above, original.end())
    names = returned[1].replace("%", "").split(",") if returned is not None else []
    writes = dict.fromkeys(name.strip() for name in names)
    return Origin(
        kernel_hash,
        ops,
        tuple(nodes),
        tuple(reads),
        tuple(annotated.get(name, Buffer(name, None, None)) for name in writes),
    )


def _packet(op: str) -> str:
    """Return `add` of `aten.add`."""
    return op.strip().rpartition(".")[2]


def _buffer(name: str, annotation: str) -> Buffer:
    found = _ANNOTATION.match(annotation)
    if found is None:
        return Buffer(name, None, None)
    return Buffer(name, element_bytes(found[1]), _product(found[2]))


def _product(shape: str) -> int | None:
    elements = 1
    for size in shape.split(",") if shape.strip() else ():
        digits = size.strip()
        if not (digits.isascii() and digits.isdecimal()) or len(digits) > _LONGEST_SIZE:
            return None  # a symbol, or nothing sane
        elements *= int(digits)
        if elements > _LARGEST:
            return None
    return elements
