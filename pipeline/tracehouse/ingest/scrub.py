r"""Taking out of a trace who made it and where: host names, user names and home folders.

What is replaced, in every text of a trace:

- a home folder (/home/NAME, /Users/NAME, /root, C:\Users\NAME, also below a mount) by `~`;
- the value of a key that names a host, a user or a folder by `host`, `user` or `~`;
- a host or user named so in the envelope, or as the owner of a home folder there, wherever it
  stands as a word; one that is an ordinary word (`torch`, `max`) only in paths and before an `@`;
- the folders of `traceName`, and the host in the name that PyTorch gives a trace.

What looks like a secret is replaced too, if the lake was told to keep it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracehouse.ingest.fields import json_text, parsed_json
from tracehouse.ingest.redaction import rows_with_marks, with_changes
from tracehouse.ingest.secrets import redact, redact_text

HOST, USER, HOME = "host", "user", "~"

# Keys, lower-case, whose text is a host, a user or a folder of one.
_KEYS = {
    **dict.fromkeys(
        "computername fqdn host host_name hostname master_addr my_node_name node node_name nodename"
        " pod_name slurm_job_nodelist slurm_nodelist slurmd_nodename".split(),
        HOST,
    ),
    **dict.fromkeys(
        "author created_by launched_by login logname owner run_by slurm_job_user started_by"
        " submitted_by sudo_user user user_name username".split(),
        USER,
    ),
    **dict.fromkeys("cwd home homepath oldpwd pwd userprofile".split(), HOME),
}
_TRACE_NAME = "traceName"
# What tensorboard_trace_handler calls a file: HOST_PID.TIME.pt.trace.json
_HANDLER_NAME = re.compile(r"[A-Za-z0-9.-]+(?=_\d+\.\d{6,}\.pt\.trace\.json)")

_NAME = r"[^/\\\s\"'`:;,()<>|&*?=\[\]{}]+"
_HOME_FOLDER = re.compile(
    rf"(?<![A-Za-z0-9_.~-])(?:/[A-Za-z0-9_.-]+){{0,8}}?/(?:home|Users)/(?P<unix>{_NAME})"
    r"|(?<![A-Za-z0-9])[A-Za-z]:[\\/]+(?i:Users|Documents and Settings)[\\/]+"
    r"(?P<windows>[^\\/:*?\"<>|\r\n]+)"
    r"|(?<![A-Za-z0-9_./~-])/root(?![A-Za-z0-9_.-])"
)
# Names that are words of traces and machines: replaced only where they can be nothing else.
_COMMON = frozenset(
    "admin app aten backend build builder cluster cuda data default device docker driver engine"
    " global graph host jenkins kernel launch linux local localhost login main master memory"
    " model nobody node nvidia operator optimizer python pytorch rank remote root runner runtime"
    " server service stream system tensor tester thread torch trace training triton ubuntu user"
    " vllm sglang worker workspace".split()
)
_SURE_LENGTH = 5


class Scrubber:
    """Scrubs the texts of one trace, by what its envelope tells of its host and user."""

    def __init__(self, envelope: dict[str, Any]) -> None:
        named = set(_names(envelope))
        anywhere = {name: stand_in for name, stand_in in named if _is_distinct(name)}
        in_paths = {name: stand_in for name, stand_in in named if not _is_distinct(name)}
        self._stand_in = {n.lower(): s for n, s in (anywhere | in_paths).items()}
        self._anywhere = _any_of(anywhere, r"(?<![A-Za-z0-9])(?:{})(?![A-Za-z0-9])")
        self._in_paths = _any_of(in_paths, r"(?<=[/\\])(?:{0})(?=[/\\]|$)|\b(?:{0})(?=@)|^(?:{0})$")
        hints = ["/home/", "/users/", r"\\users", "documents and", "/root"]
        hints += [rf'"{key}":' for key in _KEYS]
        hints += [re.escape(json_text(name)[1:-1]) for name, _ in named]
        self._hint = "|".join(hints)

    def envelope(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """Return the keys beside the event list, scrubbed."""
        scrubbed = dict(self._value(redact(envelope)[0]))
        name = scrubbed.get(_TRACE_NAME)
        if isinstance(name, str):
            base = re.split(r"[/\\]", name)[-1]
            scrubbed[_TRACE_NAME] = _HANDLER_NAME.sub(HOST, base)
        return scrubbed

    def text(self, text: str) -> str:
        """Return a text, such as a name, scrubbed."""
        return self._scrubbed(redact_text(text)[0])

    def json_texts(self, texts: pa.StringArray) -> pa.StringArray:
        """Return an array of JSON texts, scrubbed; only those that hold a hint are parsed."""
        if texts.null_count == len(texts):
            return texts
        hinted = pc.match_substring_regex(texts, self._hint, ignore_case=True)
        rows = set(rows_with_marks(texts).tolist())
        rows.update(pc.indices_nonzero(hinted.fill_null(False)).to_pylist())
        return with_changes(texts, {row: self._json(texts[row].as_py()) for row in sorted(rows)})

    def _json(self, text: str) -> str:
        try:
            return json_text(self._value(redact(parsed_json(text))[0]))
        except RecursionError:  # too deep to be parsed; what replaces a name needs no escape
            return self.text(text)

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            scrubbed: dict[str, Any] = {}
            for inner, item in value.items():
                name = self._scrubbed(inner)
                while name in scrubbed:  # two folders that have become one
                    name += "'"
                scrubbed[name] = self._value(item, inner)
            return scrubbed
        if isinstance(value, list):
            return [self._value(item, key) for item in value]
        if isinstance(value, str) and value:
            return _KEYS.get(key.lower()) or self._scrubbed(value)
        return value

    def _scrubbed(self, text: str) -> str:
        text = _HOME_FOLDER.sub(HOME, text)
        for names in (self._anywhere, self._in_paths):
            if names is not None:
                text = names.sub(lambda match: self._stand_in[match[0].lower()], text)
        return text


def _names(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the hosts and users that an envelope tells of, each with what replaces it."""
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from _names(item, inner)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item, key)
    elif isinstance(value, str):
        stand_in = _KEYS.get(key.lower())
        if stand_in in (HOST, USER) and re.fullmatch(r"[\w.-]{2,255}", value):
            yield value, stand_in
            short = value.partition(".")[0]
            if stand_in == HOST and len(short) > 3 and re.search(r"\D", short):
                yield short, HOST
        for match in _HOME_FOLDER.finditer(value):
            owner = match["unix"] or match["windows"]
            if owner and len(owner) > 1:
                yield owner, USER


def _is_distinct(name: str) -> bool:
    """Whether a name is no word that a trace may hold for another reason."""
    return name.lower() not in _COMMON and (
        len(name) >= _SURE_LENGTH or re.search(r"[0-9-]", name) is not None
    )


def _any_of(names: dict[str, str], pattern: str) -> re.Pattern[str] | None:
    if not names:
        return None
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(pattern.format("|".join(map(re.escape, longest_first))), re.IGNORECASE)
