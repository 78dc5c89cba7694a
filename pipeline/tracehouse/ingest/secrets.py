"""Keeping secrets out of the lake.

Traces carry their author's environment, with access tokens in it.
"""

from __future__ import annotations

import re
from typing import Any

REDACTED = "redacted"

# The word stands alone or between separators: HF_TOKEN and api-key, but not tokenizer or
# max_tokens_per_s.
_SECRET_KEY = re.compile(
    r"(?:^|[^a-z])(?:token|secret|password|passwd|passphrase|credentials?"
    r"|(?:api|access|private|secret)[_-]?key)s?(?:$|[^a-z])"
)
_SECRET_FORM = re.compile(
    r"\bhf_[A-Za-z0-9]{20,}"  # Hugging Face
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"  # GitHub
    r"|\bglpat-[A-Za-z0-9_-]{16,}"  # GitLab
    r"|\bsk-[A-Za-z0-9_-]{20,}"  # OpenAI, Anthropic and others
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # AWS
    r"|\bAIza[A-Za-z0-9_-]{30,}"  # Google
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"  # JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@"  # a password in a URL
)


def redact(value: Any, key: str = "") -> tuple[Any, int]:
    """Replace every text that looks like a secret, by its key or its form, by `redacted`.

    Returns the value, changed copies where needed, and how many texts were replaced.
    """
    if isinstance(value, dict):
        pairs = {k: redact(v, k) for k, v in value.items()}
        return {k: v for k, (v, _) in pairs.items()}, sum(n for _, n in pairs.values())
    if isinstance(value, list):
        items = [redact(v, key) for v in value]
        return [v for v, _ in items], sum(n for _, n in items)
    if isinstance(value, str) and value not in ("", REDACTED) and _is_secret(key, value):
        return REDACTED, 1
    return value, 0


def _is_secret(key: str, value: str) -> bool:
    # camelCase becomes snake_case first, so that one rule judges both.
    folded = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()
    return _SECRET_KEY.search(folded) is not None or _SECRET_FORM.search(value) is not None
