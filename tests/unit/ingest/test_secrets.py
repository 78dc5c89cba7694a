from tracehouse.ingest.secrets import redact


def test_values_whose_key_says_secret():
    environment = {
        "HF_TOKEN": "abc",
        "AWS_SECRET_ACCESS_KEY": "x",
        "db-password": "p",
        "apiKey": "k",
        "OPENAI_API_KEY": "k",
        "GOOGLE_APPLICATION_CREDENTIALS": "file",
    }
    redacted, count = redact({"system": {"env": environment}})
    assert redacted == {"system": {"env": dict.fromkeys(environment, "redacted")}}
    assert count == 6


def test_values_that_look_like_one():
    token = "hf_" + "a1B2" * 8
    redacted, count = redact([f"login {token}", "postgres://me:secret@host/db", "AKIA" + "A1" * 8])
    assert redacted == ["redacted"] * 3
    assert count == 3


def test_all_else_stays():
    harmless = {
        "tokenizer": "gpt2",
        "max_tokens": 512,
        "token_count": 3,
        "HF_TOKEN": "",
        "API_TOKEN": "redacted",
        "monkey": "see",
        "url": "https://host:8000/path@2",
        "list": [1, None, True],
    }
    assert redact(harmless) == (harmless, 0)
