"""What looks like a secret, by its key or by its form.

Traces carry their author's environment, with access tokens in it. A text is judged by the key it
stands under (HF_TOKEN, db-password, apiKey …) and by its form (the prefixes of known tokens,
`scheme://user:password@`, `PASSWORD=…` in a command). What is plainly none stays: counts
(`max_tokens`, `token_count`), a tokenizer's words (`eos_token`), switches (`true`, `none`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from tracehouse.ingest.fields import json_text, parsed_json

REDACTED = "redacted"

# The word stands alone or between separators: HF_TOKEN and api-key, but not tokenizer.
_SECRET_KEY = re.compile(
    r"(?:^|[^a-z])(?:(?P<token>token)|secret|password|passwd|passphrase|credential"
    r"|(?:api|access|account|auth|encryption|private|secret|signing|ssh)[_ -]?key"
    r"|(?<=[a-z0-9]_)pwd)s?(?:$|[^a-z])"
)
# Tokens that are units of text or counted things.
_TEXT_TOKEN = re.compile(
    r"(?:^|[^a-z])(?:accepted|additional|audio|batched|bos|cached|cls|completion|decode|draft|end"
    r"|eos|extend|first|generated|image|input|kv|last|mask|max|min|n|new|next|num|number|of|output"
    r"|pad|per|prefill|processed|prompt|reasoning|running|sampled|scheduled|sep|seq|sequence|sos"
    r"|special|start|stop|text|total|unk|video|word)[^a-z]tokens?(?:$|[^a-z])"
    r"|(?:^|[^a-z])tokens?[^a-z](?:budget|count|counts|dim|dtype|embedding|embeddings|id|ids|index"
    r"|indices|len|length|lengths|limit|mask|name|num|per|pool|position|positions|rate|ratio|s"
    r"|shape|size|text|throughput|to|type|types|usage)(?:$|[^a-z])"
)
# A switch, or the version of a package that is called so.
_HARMLESS = re.compile(
    r"true|false|yes|no|on|off|none|null|n/?a|[0-9]+(?:\.[0-9]+)+[0-9a-z.+-]{0,40}", re.IGNORECASE
)
_COUNT_OR_WORD = re.compile(r"[-+]?[0-9][0-9.,:%]*|<.*>|\[[^\[\]]*\]", re.DOTALL)

_TOKEN_FORM = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{20,}"  # Hugging Face
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"  # GitHub
    r"|glpat-[A-Za-z0-9_-]{16,}"  # GitLab
    r"|sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic and others
    r"|nvapi-[A-Za-z0-9_-]{20,}"  # NVIDIA
    r"|pypi-[A-Za-z0-9_-]{40,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]+"  # JSON web token
    r")|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}",
    re.DOTALL,
)
# One of these is in every text that has such a form.
_FORM_MARKS = (
    *("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "nvapi-"),
    *("pypi-", "xox", "AKIA", "ASIA", "AIza", "eyJ", "PRIVATE KEY", "earer "),
)
_URL_PASSWORD = re.compile(r"(?<=://)[^/\s:@\"']{0,200}:[^/\s@\"']{1,400}(?=@)")
# KEY=value, --key=value, "key": "value"; the key is judged as any other.
_KEY_WORDS = ("token", "secret", "passw", "passphrase", "credential", "key", "pwd")
_ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_-])(?P<key>[A-Za-z0-9_.-]{0,64}?"
    rf"(?i:{'|'.join(_KEY_WORDS)})[A-Za-z0-9_-]{{0,32}})"
    r"(?:=(?!=)\\*[\"']?|\\*[\"'] ?: ?\\*[\"'])(?P<value>[^\s\"'&,;)}\\]{1,4000})"
)
_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]*")


def redact(value: Any, key: str = "") -> tuple[Any, int]:
    """Replace every text that looks like a secret, by its key or its form, by `redacted`.

    `value` is parsed JSON. Returns the value, changed copies where needed, and how many texts were
    replaced. Keys stay. What stands below a key such as `secrets` is judged by that key too.
    """
    return _redact(value, key, is_below_secret=False)


def _redact(value: Any, key: str, is_below_secret: bool) -> tuple[Any, int]:
    if isinstance(value, dict):
        below = is_below_secret or (_is_secret_key(key) and not _names_tokens(key))
        pairs = {k: _redact(v, k, below) for k, v in value.items()}
        return {k: v for k, (v, _) in pairs.items()}, sum(n for _, n in pairs.values())
    if isinstance(value, list):
        if _names_tokens(key):
            key = ""  # a list of words
        keys = [key, *(_option(item) or key for item in value[:-1])]
        items = [_redact(v, k, is_below_secret) for v, k in zip(value, keys, strict=False)]
        return [v for v, _ in items], sum(n for _, n in items)
    if isinstance(value, str) and value not in ("", REDACTED):
        is_short = len(key) + len(value) <= _SHORT
        holds_secret = (_short_holds_secret if is_short else _holds_secret)(key, value)
        if holds_secret or (is_below_secret and not _HARMLESS.fullmatch(value)):
            return REDACTED, 1
    return value, 0


def _holds_secret(key: str, value: str) -> bool:
    return _is_secret_under(key, value) or redact_text(value)[1] > 0


def redact_text(text: str) -> tuple[str, int]:
    """Replace what looks like a secret within a text, as in a name, and leave the rest of it.

    Returns the text and how many places were replaced.
    """
    if len(text) <= _SHORT:
        return _redact_short(text)
    return _redact_text(text)


def _redact_text(text: str) -> tuple[str, int]:
    count = 0
    if any(mark in text for mark in _FORM_MARKS):
        text, count = _TOKEN_FORM.subn(REDACTED, text)
    if "://" in text:
        text, passwords = _URL_PASSWORD.subn(REDACTED, text)
        count += passwords
    if ("=" in text or ":" in text) and _holds_key_word(text):
        text, assigned = _without_assigned(text)
        count += assigned
    return text, count


# The envelopes of an archive say the same again and again.
_SHORT = 256
_redact_short = lru_cache(maxsize=4096)(_redact_text)
_short_holds_secret = lru_cache(maxsize=4096)(_holds_secret)


def _holds_key_word(text: str) -> bool:
    folded = text.lower()
    return any(word in folded for word in _KEY_WORDS)


def _without_assigned(text: str) -> tuple[str, int]:
    count = 0

    def without_value(match: re.Match[str]) -> str:
        nonlocal count
        value = match["value"]
        if value == REDACTED or not _is_secret_under(match["key"], value):
            return match[0]
        count += 1
        return match[0][: match.start("value") - match.start()] + REDACTED

    return _ASSIGNMENT.sub(without_value, text), count


def redact_json(text: str) -> tuple[str, int]:
    """Redact a JSON text in canonical form (`fields.json_text`), which the result is in too.

    One that is nested too deep to be parsed is redacted as text.
    """
    try:
        value, count = redact(parsed_json(text))
        return (json_text(value), count) if count else (text, 0)
    except RecursionError:
        return redact_text(text)


def _is_secret_under(key: str, value: str) -> bool:
    """Whether a text is a secret because of its key."""
    if not _is_secret_key(key) or _HARMLESS.fullmatch(value):
        return False
    return not (_names_tokens(key, plural=False) and _COUNT_OR_WORD.fullmatch(value))


@lru_cache(maxsize=4096)
def _is_secret_key(key: str) -> bool:
    folded = _folded(key)
    if _SECRET_KEY.search(folded) is None:
        return False
    rest = _TEXT_TOKEN.sub(" ", folded)
    return rest == folded or _SECRET_KEY.search(rest) is not None


def _names_tokens(key: str, plural: bool = True) -> bool:
    """Whether a key is secret for the word token (in the plural) and for no other."""
    match = _SECRET_KEY.search(_folded(key))
    is_token = match is not None and match["token"] is not None
    return is_token and (not plural or "tokens" in key.lower())


def _folded(key: str) -> str:
    # camelCase becomes snake_case first, so that one rule judges both.
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()


def _option(item: Any) -> str:
    """The name of a command line's option (--api-key), whose value is the next item; else empty."""
    is_option = isinstance(item, str) and item.startswith("-") and _OPTION.fullmatch(item)
    return item if is_option else ""
