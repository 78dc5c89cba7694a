from __future__ import annotations

import pyarrow as pa
import pytest

from tracehouse.ingest.scrub import Scrubber

ENVELOPE = {
    "system": {"uname": {"node": "gpu-17.cluster.example", "machine": "x86_64"}},
    "env": {"USER": "alexandra", "HOME": "/home/alexandra", "PWD": "/scratch/run", "N": 5},
    "traceName": "/home/alexandra/logs/gpu-17_4711.1700000000000000000.pt.trace.json",
}


@pytest.fixture(scope="module")
def scrubber():
    return Scrubber(ENVELOPE)


def test_the_envelope(scrubber):
    assert scrubber.envelope(ENVELOPE) == {
        "system": {"uname": {"node": "host", "machine": "x86_64"}},
        "env": {"USER": "user", "HOME": "~", "PWD": "~", "N": 5},
        "traceName": "host_4711.1700000000000000000.pt.trace.json",
    }


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("/home/bob/x.py(12): f", "~/x.py(12): f"),
        ("/mnt/nfs/home/bob/x.py", "~/x.py"),
        ("/Users/bob/x.py", "~/x.py"),
        ("/root/x.py(1): <module>", "~/x.py(1): <module>"),
        ("/root", "~"),
        (r"C:\Users\Bob Smith\x.py(3): f", r"~\x.py(3): f"),
        ("C:/Users/bob/x.py", "~/x.py"),
        ("a:/home/bob:/home/eve:/root/b", "a:~:~:~/b"),
        ("file:///home/bob/x", "file://~/x"),
        ("alexandra@gpu-17: run", "user@host: run"),
        ("at GPU-17.cluster.example, rank 0", "at host, rank 0"),
        ("/scratch/alexandra_2/x", "/scratch/user_2/x"),
    ],
)
def test_texts_that_tell(scrubber, text, scrubbed):
    assert scrubber.text(text) == scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "aten::mm",
        "src/home/page.py(3): show",
        "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py(1773): _call_impl",
        "/var/rootless/x",
        "/srv/root/x",
        "xalexandra",
        "gpu-170",
    ],
)
def test_texts_that_tell_nothing(scrubber, text):
    assert scrubber.text(text) == text


def test_an_ordinary_word_goes_only_where_it_is_a_name():
    scrubber = Scrubber({"env": {"USER": "max", "HOSTNAME": "torch"}})
    assert scrubber.text("aten::max, torch/nn") == "aten::max, torch/nn"
    assert scrubber.text("max@x in /data/max/run") == "user@x in /data/user/run"
    assert scrubber.envelope({"env": {"started": "max"}}) == {"env": {"started": "user"}}


def test_json_texts(scrubber):
    texts = pa.array(
        [
            '{"a":1}',
            None,
            '{"labels":"on gpu-17","n":1.50}',
            '{"hostname":"other","/home/bob/k":["/home/eve/x",null]}',
            r'{"p":"C:\\Users\\bob\\x"}',
            '{"HF_TOKEN":"abc"}',
        ]
    )
    assert scrubber.json_texts(texts).to_pylist() == [
        '{"a":1}',
        None,
        '{"labels":"on host","n":1.50}',
        '{"hostname":"host","~/k":["~/x",null]}',
        r'{"p":"~\\x"}',
        '{"HF_TOKEN":"redacted"}',
    ]


def test_two_keys_that_become_one_stay_two(scrubber):
    texts = pa.array(['{"/home/bob":1,"/home/eve":2}'])
    assert scrubber.json_texts(texts).to_pylist() == ['{"~":1,"~\'":2}']
