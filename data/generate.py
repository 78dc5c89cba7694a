"""Write the sample traces anew:  python data/generate.py [FOLDER]

Equal sources give equal files, byte for byte. README.md says what is right for each sample.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generators import serving, training, triton_block, two_ranks
from generators.kineto import compress, compress_cut_off


def cut_off(text: str) -> str:
    """Return the training sample up to the middle of the first GPU event of its second step."""
    before, copy, _ = text.rpartition('"cat": "gpu_memcpy", "name": "Memcpy HtoD')
    before, copy, _ = before.rpartition('"cat": "gpu_memcpy", "name": "Memcpy HtoD')
    return before + copy


def samples() -> dict[str, bytes]:
    """Return the content of each sample by its file name."""
    training_text = training.draw().text()
    drawings = {
        "triton_block": triton_block.draw(),
        "serving": serving.draw(),
        "two_ranks/rank0": two_ranks.draw(0),
        "two_ranks/rank1": two_ranks.draw(1),
    }
    files = {f"{name}.json.gz": compress(d.text().encode()) for name, d in drawings.items()}
    files["training.json.gz"] = compress(training_text.encode())
    files["truncated.json.gz"] = compress_cut_off(cut_off(training_text).encode())
    return files


def main() -> None:
    """Write every sample below the folder given, or below `samples/` beside this file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "samples"
    for name, content in samples().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main()
