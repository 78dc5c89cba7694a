from tracehouse.ingest.about import about


def test_what_the_envelope_says():
    facts = about(
        {
            "schemaVersion": 1,
            "distributedInfo": {"rank": 3, "world_size": 8},
            "deviceProperties": [{"name": "NVIDIA H100"}, {"name": "NVIDIA H100"}],
            "baseTimeNanoseconds": "1759300074000000000",  # F41: in quotes
        },
        ["aten::mm"],
        "a/rank7.json",
    )
    assert (facts.rank, facts.world_size) == (3, 8)
    assert facts.devices == ("NVIDIA H100", "NVIDIA H100")
    assert facts.arch == "NVIDIA H100"
    assert facts.base_time_ns == 1_759_300_074_000_000_000
    assert facts.framework == "pytorch"


def test_rank_from_the_name():
    names = {
        "t/rank3.json": 3,
        "t/x_rank_0.json.gz": 0,
        "t/rank-34.Jul_15.pt.trace.json": 34,
        "t/1769-TP-1-DP-0.trace.json.gz": 1,
        "t/frank3.json": None,
        "rank5/trace.json": None,
        "t/trace.json": None,
    }
    assert {name: about({}, [], name).rank for name in names} == names


def test_envelopes_that_are_not_what_they_should_be():
    facts = about(
        {"distributedInfo": [], "deviceProperties": {"name": 5}}, ["vllm::attention"], "x"
    )
    assert facts.rank is None
    assert facts.devices == ()
    assert facts.arch is None
    assert facts.base_time_ns is None
    assert facts.framework == "vllm"
