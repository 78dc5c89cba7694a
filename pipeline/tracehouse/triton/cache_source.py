"""The text of one compiled kernel: decorator, signature, sizes, stores.

Read with regular expressions and nothing else, so that a text can only ever be read wrong. Layouts
of PyTorch 2.1 to 2.13: size_hints as a list or by dimension, signature by index or by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tracehouse.triton.names import UNKNOWN_KIND
from tracehouse.triton.pointers import Pointer, Role, element_bytes, role_of

DIMENSIONS = ("z", "y", "x", "r0", "r1")  # slowest first, the order of the launch's scalars
REDUCED = ("r0", "r1")
_PREFIXES = {"z": "z", "y": "y", "x": "x", "r": "r0", "r0_": "r0", "r1_": "r1"}
_LARGEST = 2**63 - 1


class Missing(StrEnum):
    """Why something of a cached kernel is not known."""

    NO_SIGNATURE = "the cache file has no signature of the kernel"
    BAD_SIGNATURE = "the signature in the cache file cannot be read"
    NO_POINTERS = "the signature in the cache file has no pointers to data"
    NO_SIZES = "the cache file does not say how many elements the kernel runs over"
    BAD_SIZE_HINTS = "the size hints in the cache file cannot be read"
    COMBO = "a kernel of several parts has no one size"
    NO_TYPE = "the type of a pointer is not known"
    NO_ROLE = "what the kernel does with a pointer is not known"
    TOO_LARGE = "the product of the sizes is out of range"


@dataclass(frozen=True, slots=True)
class Source:
    """What the text of a kernel says.

    function: the name it is defined by. kernel_name: the one that profilers are told, "" if none.
    kind: a word of names.KINDS. sizes: elements by dimension, in the order of DIMENSIONS, None
    where not known. exact: the dimensions whose size is no hint. pointers: those to data and
    workspaces in the order of the signature, None if there is no readable signature. mutated:
    names of parameters that it writes in place. why: what could not be read.
    """

    function: str
    kernel_name: str
    kind: str
    sizes: dict[str, int | None]
    exact: frozenset[str]
    pointers: tuple[Pointer, ...] | None
    mutated: tuple[str, ...]
    why: tuple[Missing, ...]


_KINDS = {
    "pointwise": "poi",
    "reduction": "red",
    "persistent_reduction": "per",
    "template": "tem",
    "foreach": "for",
    "split_scan": "spl",
}
# Before 2.3 the decorators were imported by name.
_DECORATOR = re.compile(r"\n@(triton_heuristics\.)?(\w+)\(")
_DEFINITION = re.compile(r"\n@triton\.jit\s*\ndef (\w+)\(([^()]*)\)\s*:")
_PARAMETER = re.compile(r"[:=].*", re.DOTALL)  # what follows a parameter's name
_AFTER_BODY = re.compile(r"\n(?=\S)")
_SIGNATURE = re.compile(r"""['"]signature['"]\s*:\s*""")
_CONSTANTS = re.compile(r"""['"]constants['"]\s*:\s*\{([^{}]*)\}""")
_FLAT_DICT = re.compile(r"\{([^{}]*)\}")
_INDEX = r"(?<!\d)(\d{1,9})"
_TYPED = re.compile(
    rf"""(?:'(\w+)'|"(\w+)"|{_INDEX})\s*:\s*(?:'([^'\\]*)'|"([^"\\]*)")""", re.ASCII
)
_CONSTANT = re.compile(
    rf"""(?:'(\w+)'|"(\w+)"|\(?{_INDEX},?\)?)\s*:\s*(?:(\d+)(?![\w.]))?""", re.ASCII
)
_HINTS = re.compile(r"\bsize_hints\s*=\s*")
_HINT_TEXT = re.compile(r"\{([^{}]*)\}|[\[(]([^\[\](){}]*)[\])]")
_HINT = re.compile(r"""(?:'(\w+)'|"(\w+)")\s*:\s*(\d+)(?![\w.])""", re.ASCII)
_MUTATED = re.compile(r"""['"]mutated_arg_names['"]\s*:\s*[\[{(]([^\[\]{}()]*)[\]})]""")
_QUOTED = re.compile(r"""['"](\w+)['"]""", re.ASCII)
_KERNEL_NAME = re.compile(r"""['"]kernel_name['"]\s*:\s*['"]([^'"\\]*)['"]""")
_NUMEL = re.compile(
    r"numel(?:[ \t]*:[ \t]*tl\.constexpr)?[ \t]*=[ \t]*(\d+)[ \t]*(?:#.*)?$",
    re.MULTILINE | re.ASCII,
)
_NUMEL_PARAMETER = re.compile(r"(x|y|z|r0_|r1_|r)numel", re.ASCII)
_STORES = (
    re.compile(r"tl\.store\((?:tl\.make_block_ptr\()?(\w+)(.*)", re.ASCII),
    re.compile(r"tl\.atomic_\w+\((\w+)(.*)", re.ASCII),
)
_REDUCED_INDEX = re.compile(r"\br(?:0_|1_)?(?:\d+|index|mask|offset)\b|R(?:0_|1_)?BLOCK", re.ASCII)
_SIGNS_OF_PARTS = ("num_xblocks_", "pid_offset")  # in the body of a combo kernel
_BODY_INDENT = 4


def parse_source(text: str) -> Source | None:
    """Read the text of a kernel; None if it defines none."""
    text = f"\n{text}"
    decorators = [
        match for match in _DECORATOR.finditer(text) if match[1] is not None or match[2] in _KINDS
    ]
    definition = _DEFINITION.search(text, decorators[0].end() if decorators else 0)
    if definition is None:
        return None
    kind = UNKNOWN_KIND
    head = ""
    if decorators:
        head = text[decorators[0].start() : definition.start()]
        if len(decorators) == 1:
            kind = _KINDS.get(decorators[0][2], UNKNOWN_KIND)
    after = _AFTER_BODY.search(text, definition.end())
    body = text[definition.end() : after.start() if after else len(text)]
    names = [_PARAMETER.sub("", part).strip() for part in definition[2].split(",")]

    why: list[Missing] = []
    signature = _signature(head, names, why)
    constants = _constants(head, names)
    sizes, exact = _sizes(head, body, kind, names, constants, why)
    pointers = None
    if signature is not None:
        stores = _stores(body, kind)
        pointers = tuple(
            _pointer(name, type_, stores)
            for name, type_ in signature
            if _is_pointer(type_) and name not in constants
        )
    return Source(
        function=definition[1],
        kernel_name=_first(_KERNEL_NAME, head),
        kind=kind,
        sizes=sizes,
        exact=exact,
        pointers=pointers,
        mutated=tuple(_QUOTED.findall(_first(_MUTATED, head))),
        why=tuple(why),
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found is not None else ""


def _signature(head: str, names: list[str], why: list[Missing]) -> list[tuple[str, str]] | None:
    """Return names and types of the parameters in order."""
    start = _SIGNATURE.search(head)
    if start is None:
        why.append(Missing.NO_SIGNATURE)
        return None
    inner = _FLAT_DICT.match(head, start.end())
    if inner is None or _TYPED.sub("", inner[1]).strip(" ,\n\t"):
        why.append(Missing.BAD_SIGNATURE)
        return None
    found = []
    for by_name, or_name, index, type_, or_type in _TYPED.findall(inner[1]):
        name = by_name or or_name
        if index:
            position = _number(index)
            if position is None or position >= len(names):
                why.append(Missing.BAD_SIGNATURE)
                return None
            name = names[position]
        found.append((name, type_ or or_type))
    return found


def _constants(head: str, names: list[str]) -> dict[str, int | None]:
    """Return the parameters that were compiled in, with their value where it is an integer."""
    found: dict[str, int | None] = {}
    for by_name, or_name, index, value in _CONSTANT.findall(_first(_CONSTANTS, head)):
        name = by_name or or_name
        if index:
            position = _number(index)
            if position is None or position >= len(names):
                continue
            name = names[position]
        found[name] = _number(value)
    return found


def _sizes(
    head: str,
    body: str,
    kind: str,
    names: list[str],
    constants: dict[str, int | None],
    why: list[Missing],
) -> tuple[dict[str, int | None], frozenset[str]]:
    """Return the size of each dimension and which of them are exact."""
    in_parts = any(sign in body for sign in _SIGNS_OF_PARTS)
    if kind == "for" or "combo_grid_meta" in head or in_parts:
        why.append(Missing.COMBO)
        return {}, frozenset()
    exact: dict[str, int | None] = {}
    for match in _NUMEL.finditer(body):
        indent, prefix = _before(body, match)
        if not indent or prefix not in _PREFIXES:
            continue
        dimension, size = _PREFIXES[prefix], _number(match[1])
        if exact.setdefault(dimension, size) != size:
            why.append(Missing.COMBO)
            return {}, frozenset()
    hints = _hints(head, kind, why)
    present = set(exact) | set(hints)
    for name in names:
        parameter = _NUMEL_PARAMETER.fullmatch(name)
        if parameter is not None:
            dimension = _PREFIXES[parameter[1]]
            present.add(dimension)
            value = constants.get(name)
            if value is not None:
                exact.setdefault(dimension, value)
    sizes = {
        dimension: exact.get(dimension, hints.get(dimension))
        for dimension in DIMENSIONS
        if dimension in present
    }
    if not sizes or None in sizes.values():
        why.append(Missing.NO_SIZES)
    return sizes, frozenset(d for d, size in exact.items() if size is not None)


def _hints(head: str, kind: str, why: list[Missing]) -> dict[str, int]:
    """Return sizes rounded up to powers of two."""
    start = _HINTS.search(head)
    if start is None:
        return {}
    text = _HINT_TEXT.match(head, start.end())
    hints = None
    if text is not None:
        hints = _listed(text[2], kind) if text[1] is None else _keyed(text[1])
    if hints is None:
        why.append(Missing.BAD_SIZE_HINTS)
        return {}
    return hints


def _keyed(inner: str) -> dict[str, int] | None:
    if _HINT.sub("", inner).strip(" ,\n\t"):
        return None
    hints = {}
    for by_name, or_name, digits in _HINT.findall(inner):
        dimension, size = _PREFIXES.get(by_name or or_name), _number(digits)
        if dimension is None or size is None:
            return None
        hints[dimension] = size
    return hints


def _listed(inner: str, kind: str) -> dict[str, int] | None:
    """Read [z,] y, x, and last r for a kernel that reduces."""
    order = ("r0", "x", "y", "z") if kind in ("red", "per", "spl") else ("x", "y", "z")
    sizes = [_number(part.strip()) for part in inner.split(",") if part.strip()]
    if len(sizes) > len(order):
        return None
    hints = {}
    for dimension, size in zip(order, reversed(sizes), strict=False):
        if size is None:
            return None
        hints[dimension] = size
    return hints


def _number(digits: str) -> int | None:
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 19:
        return None
    number = int(digits)
    return number if number <= _LARGEST else None


def _stores(body: str, kind: str) -> dict[str, bool]:
    """Tell of each pointer that is written whether every step of the reduction is stored."""
    stores: dict[str, bool] = {}
    for pattern in _STORES:
        for match in pattern.finditer(body):
            name, rest = match.groups()
            in_loop = kind == "red" and _before(body, match)[0] > _BODY_INDENT
            stores[name] = stores.get(name, False) or in_loop or bool(_REDUCED_INDEX.search(rest))
    return stores


def _before(body: str, match: re.Match[str]) -> tuple[int, str]:
    """Return the indent of the line of a match, and what stands between it and the match."""
    line = body[body.rfind("\n", 0, match.start()) + 1 : match.start()]
    text = line.lstrip(" \t")
    return len(line) - len(text), text


def _is_pointer(type_: str) -> bool:
    return type_.startswith(("*", "tensordesc", "nvTmaDesc"))


def _pointer(name: str, type_: str, stores: dict[str, bool]) -> Pointer:
    role = role_of(name)
    is_full = stores.get(name) if role in (Role.OUT, Role.IN_OUT) else None
    return Pointer(name, type_, element_bytes(type_), role, is_full)
