"""What counts as a secret, and that none of it reaches a table. The tokens are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import plain
from tracegen import Trace

import tracehouse
from tracehouse.ingest import read as reading
from tracehouse.ingest.fields import json_text
from tracehouse.ingest.redaction import rows_with_marks
from tracehouse.ingest.secrets import redact, redact_text

HF = "hf_" + "a1B2" * 8
TOKENS = [
    HF,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 6,
    "glpat-" + "a1B2" * 5,
    "sk-proj-" + "a1B2" * 8,
    "nvapi-" + "a1B2" * 8,
    "xoxb-" + "1234567890",
    "AKIA" + "A1" * 8,
    "AIza" + "a1B2" * 8,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
]
SECRET_PAIRS = {
    "HF_TOKEN": "abc",
    "access_token": "abc",
    "tokens": "abc",
    "AWS_SECRET_ACCESS_KEY": "x",
    "db-password": "12345",
    "apiKey": "k",
    "API KEY": "k",
    "OPENAI_API_KEY": "k",
    "sshKey": "k",
    "MYSQL_PWD": "p",
    "passphrase": "p",
    "GOOGLE_APPLICATION_CREDENTIALS": "file",
    "WORDS_TOKEN_AND_PASSWORD": "p",
}
HARMLESS: dict[str, Any] = {
    "tokenizer": "gpt2",
    "TOKENIZERS_PARALLELISM": "false",
    "max_tokens": 512,
    "max_tokens_text": "max_tokens=512",
    "max_num_batched_tokens": "8192",
    "token_count": "3",
    "token_ids": "[1, 2]",
    "tokens": ["Once", "upon"],
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "USE_AUTH_TOKEN": "true",
    "HF_TOKEN": "",
    "API_TOKEN": "redacted",
    "SecretStorage": "3.3.1",
    "monkey": "see",
    "keyboard": "us",
    "PWD": "/work",
    "OLDPWD": "/",
    "cache_key": "abc",
    "url": "https://host:8000/path@2",
    "git": "https://host/a/b.git",
    "mail": "ssh://git@host:22/x",
    "packages": ["SecretStorage==3.3.1", "tokenizers==0.21"],
    "Collective name": "allreduce",
    "Process Group Name": "default_pg",
    "list": [1, None, True],
    "kernel": "task-" + "a1B2" * 8,
    "call": "f(password=None, token=None)",
}


@pytest.mark.parametrize(("key", "value"), SECRET_PAIRS.items())
def test_values_whose_key_says_secret(key, value):
    assert redact({"system": {"env": {key: value}}}) == (
        {"system": {"env": {key: "redacted"}}},
        1,
    )


@pytest.mark.parametrize("token", TOKENS)
def test_values_that_hold_a_token(token):
    assert redact([f"login {token}", "x"]) == (["redacted", "x"], 1)
    assert redact_text(f"login {token}, then go") == ("login redacted, then go", 1)


@pytest.mark.parametrize(
    "value",
    [
        "postgres://me:pw@host/db",
        "redis://:pw@host",
        "export DB_PASSWORD=abc",
        "run --api-key=abc",
        '{"HF_TOKEN": "abc"}',
        "{'secret': 'abc'}",
        "Authorization: Bearer " + "a1B2" * 8,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    ],
)
def test_values_of_other_forms(value):
    assert redact({"a": value}) == ({"a": "redacted"}, 1)


def test_the_value_of_an_option():
    command = ["serve", "--api-key", "abc", "--port", "80", "--max-tokens", "512"]
    assert redact(command) == ([*command[:2], "redacted", *command[3:]], 1)


def test_below_a_key_that_says_secret():
    assert redact({"credentials": {"a": "b", "n": 1, "on": "yes"}}) == (
        {"credentials": {"a": "redacted", "n": 1, "on": "yes"}},
        1,
    )


@pytest.mark.parametrize("key", HARMLESS)
def test_all_else_stays(key):
    assert redact({key: HARMLESS[key]}) == ({key: HARMLESS[key]}, 0)


def test_in_a_text_only_the_secret_goes():
    text = f"fetch https://me:pw@host/x with {HF} and DB_PASSWORD=abc; max_tokens=5"
    assert redact_text(text) == (
        "fetch https://redacted@host/x with redacted and DB_PASSWORD=redacted; max_tokens=5",
        3,
    )


@pytest.mark.parametrize("piece", ["a", "a.", "eyJ", "sk-", "token", "key=", "://a:", "--BEGIN "])
def test_a_long_text_is_done_in_time(piece):
    # A rule that looks at all that follows from every place would take hours.
    text = f"PRIVATE KEY hf_ eyJ sk- :// key= {piece * 30_000}"
    assert redact_text(text) == (text, 0)


# The quick search for marks passes over nothing that is a secret.

secrets = [*TOKENS, *(f'{{"{k}":"{v}"}}' for k, v in SECRET_PAIRS.items())]


def is_marked(text: str) -> bool:
    return rows_with_marks(pa.array(["", None, text, "x"])).tolist() == [2]


@pytest.mark.parametrize(("key", "value"), SECRET_PAIRS.items())
def test_keys_are_marked(key, value):
    assert is_marked(json_text({"n": 1, key: value}))


@given(
    st.dictionaries(
        st.sampled_from(["a", "x_tokens", *SECRET_PAIRS, *HARMLESS]),
        st.one_of(
            st.integers(),
            st.sampled_from(["abc", 'say "a"', "x\n" + HF, "pg://u:p@h", *secrets]),
            st.lists(st.sampled_from(["abc", "--password", "A_TOKEN=b", *TOKENS]), max_size=3),
        ),
        max_size=4,
    )
)
def test_what_is_redacted_is_marked(value):
    if redact(value)[1]:
        assert is_marked(json_text(value))


def test_counts_are_not_marked():
    assert not is_marked('{"num_tokens":5,"Input Dims":[[1,2]],"key":null}')


def test_rows_of_a_slice():
    texts = pa.array([HF, "x", HF, "x"]).slice(1)
    assert rows_with_marks(texts).tolist() == [1]


# Whole files


@pytest.fixture(params=["held", "streamed"])
def _way(request, monkeypatch):
    if request.param == "streamed":
        monkeypatch.setattr(reading, "HOLD_BYTES", 0)


def drawn(path: Path) -> Path:
    trace = (
        Trace(env={"HF_TOKEN": "abc"})
        .op("aten::mm", 0, 5, **{"Input Dims": [[2, 2], []], "Concrete Inputs": ["", HF]})
        .annotation(f"login {HF}", 10, 5)
        .annotation("login redacted", 20, 5)
        .annotation(f"login {TOKENS[1]}", 30, 5)
        .event(ph="M", name="process_labels", pid=1, tid=0, args={"labels": f"CPU {HF}"})
        .event(ph="i", name="x", pid=1, tid=0, ts=1, s="t", password="abc", n=1)
        .event(ph="X", name="odd", pid=1, tid=0, ts="no", note=HF)
    )
    return trace.write(path / "trace.json")


@pytest.mark.parametrize("reader", ["scan", "ijson"])
@pytest.mark.usefixtures("_way")
def test_no_secret_reaches_a_table(tmp_path, reader):
    trace = tracehouse.read(drawn(tmp_path), reader=reader)
    everything = json.dumps(
        [table.to_pylist() for table in trace.tables.values()], default=str
    ) + str([(f.example, f.count) for f in trace.findings])
    assert HF not in everything
    assert TOKENS[1] not in everything
    assert "abc" not in everything
    assert trace.envelope["env"] == {"HF_TOKEN": "redacted"}
    names = plain(trace.annotations)["name"].to_pylist()
    assert names == ["login redacted"] * 3
    # envelope, concrete input, two names, label, password, note
    assert trace.findings.count("SECRET_REDACTED") == 7
    (found,) = (f for f in trace.findings if f.code.word == "SECRET_REDACTED")
    assert found.first_event_id == 0
    (signature,) = trace.signatures.to_pylist()
    assert signature["concrete_inputs"] == ["", "redacted"]
    assert signature["input_dims"] == [[2, 2], []]


def test_equal_names_have_one_code(tmp_path):
    names = tracehouse.read(drawn(tmp_path)).events["name"].combine_chunks()
    codes = {
        code for code in names.indices.to_pylist() if names.dictionary[code].as_py()[:5] == "login"
    }
    assert len(codes) == 1


def test_both_readers_redact_alike(tmp_path):
    path = drawn(tmp_path)
    scan, ijson = (tracehouse.read(path, reader=reader) for reader in ("scan", "ijson"))
    assert plain(scan.events).equals(plain(ijson.events))


@pytest.mark.parametrize("reader", ["scan", "ijson"])
def test_kept_when_asked(tmp_path, reader):
    trace = tracehouse.read(drawn(tmp_path), reader=reader, keep_secrets=True)
    assert trace.envelope["env"] == {"HF_TOKEN": "abc"}
    assert plain(trace.annotations)["name"].to_pylist()[0] == f"login {HF}"
    assert trace.findings.count("SECRET_REDACTED") == 0
    assert plain(trace.events)["extra"].to_pylist()[5] == '{"password":"abc","n":1}'
