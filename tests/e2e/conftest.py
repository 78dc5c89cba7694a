"""Fixtures that several modules here share."""

from __future__ import annotations

import secrets

import pytest
from warehouses import analyse

from tracehouse.commands import division


@pytest.fixture(scope="session")
def samples_alone(tmp_path_factory, repo_root):
    """Return the warehouse of the samples, made in this process, a part a file, and its report."""
    out = tmp_path_factory.mktemp("alone") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "PART_BYTES", 1)
        return out, analyse(repo_root / "data" / "samples", out=out)


@pytest.fixture(scope="session")
def endpoint():
    """Return the address of an S3 server on loopback."""
    pytest.importorskip("s3fs", reason="the extra s3 is not installed")
    moto = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    from moto import backends

    names = tuple(backends.list_of_moto_modules())
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        # It looks them up on disk for each request, which takes longer than to answer it.
        patch.setattr(backends, "list_of_moto_modules", lambda: names)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def door(bucket, monkeypatch):
    """Return the door before the server of `bucket`, which leads there from now on."""
    import s3fs
    from flaky_s3 import opened_door

    with opened_door() as door:
        monkeypatch.setenv("AWS_ENDPOINT_URL", door.address)
        s3fs.S3FileSystem.clear_instance_cache()
        yield door


@pytest.fixture(scope="session")
def to_reach_s3(endpoint):
    """Return the environment variables that lead to the server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "key-of-the-test",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@pytest.fixture
def bucket(to_reach_s3, monkeypatch, tmp_path):
    """Return a boto3 client and the name of an empty bucket, with the environment to reach it."""
    import boto3
    import s3fs

    for name, value in to_reach_s3.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRACEHOUSE_CACHE", str(tmp_path / "cache"))
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    name = f"traces-{secrets.token_hex(6)}"
    client.create_bucket(Bucket=name)
    yield client, name
    s3fs.S3FileSystem.clear_instance_cache()
