"""The objects of warehouses in a test's bucket, which is a client and a name."""

from __future__ import annotations

from typing import Any

InBucket = tuple[Any, str]


def keys(bucket: InBucket, name: str) -> set[str]:
    """Return the names of the objects of a warehouse."""
    found = bucket[0].list_objects_v2(Bucket=bucket[1], Prefix=f"{name}/")
    return {entry["Key"].removeprefix(f"{name}/") for entry in found.get("Contents", ())}


def copied(bucket: InBucket, source: str, target: str) -> None:
    """Copy a warehouse within the bucket."""
    for key in keys(bucket, source):
        origin = {"Bucket": bucket[1], "Key": f"{source}/{key}"}
        bucket[0].copy_object(Bucket=bucket[1], Key=f"{target}/{key}", CopySource=origin)
