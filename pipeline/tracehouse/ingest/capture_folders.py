"""Which of the files found are traces, and which show the capture of the graphs that those replay.

vLLM and SGLang write what happens while CUDA or HIP graphs are captured to a folder
`capture_traces` beside the traces. Where it lies beside no trace that was found, its files are
traces like others.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import xxhash

from tracehouse.errors import UsageError
from tracehouse.ingest.discover import SourceFile, discover
from tracehouse.ingest.recognise import is_url

FOLDER = "capture_traces"
INDEX = "execution_details.json"
"""In such a folder: a list of objects with `file`, `batch_size` and `mode`."""

CaptureFiles = tuple[SourceFile, ...]


@dataclass(frozen=True, slots=True)
class Divided:
    """The files by what they are for, each sorted by path.

    captures: those that belong to each trace, by its path; a trace without any is left out.
    """

    traces: tuple[SourceFile, ...]
    captures: Mapping[str, CaptureFiles]

    def of(self, file: SourceFile) -> CaptureFiles:
        """Return the captures that belong to a trace."""
        return self.captures.get(file.path, ())

    @property
    def shared(self) -> CaptureFiles:
        """The captures of a single trace; of several, those of the first."""
        return self.of(self.traces[0]) if self.traces else ()

    @property
    def capture_files(self) -> CaptureFiles:
        """Every capture file, once."""
        files = {file.path: file for files in self.captures.values() for file in files}
        return tuple(files[path] for path in sorted(files))


def divide(files: Sequence[SourceFile], capture: str | None = None) -> Divided:
    """Tell traces and captures apart, and find the captures beside each trace.

    `capture`: a file or folder whose captures belong to all traces, beside those that lie beside
    them. UsageError if there is none at that path, or every file is a capture.
    """
    named = () if capture is None else discover([capture]).files
    if capture is not None and not named:
        raise UsageError(f"no trace in {capture}", hint="give the folder of the capture traces")
    given = {file.path for file in named}
    others = [file for file in files if file.path not in given]
    if files and not others:
        raise UsageError(
            "every file of PATHS is a capture trace",
            hint="give the traces in PATHS, and only the folder of captures with --capture",
        )
    beside: dict[str, list[SourceFile]] = {}
    traces: dict[str, list[SourceFile]] = {}
    for file in others:
        owner = _owner(file.path)
        if owner is None:
            traces.setdefault(posixpath.dirname(file.path), []).append(file)
        else:
            beside.setdefault(owner, []).append(file)
    for folder, captures in beside.items():
        if folder not in traces:  # they are all there is
            traces.setdefault(f"{folder}/{FOLDER}", []).extend(captures)
    found: dict[str, CaptureFiles] = {}
    for folder, own in traces.items():
        of_folder = (*named, *_beside(folder, beside.get(folder, [])))
        if of_folder:
            distinct = {file.path: file for file in of_folder}
            ordered = tuple(distinct[path] for path in sorted(distinct))
            found.update((file.path, ordered) for file in own)
    every = sorted((file for own in traces.values() for file in own), key=lambda f: f.path)
    return Divided(tuple(every), found)


def _owner(path: str) -> str | None:
    """Return the folder beside whose traces a file of captures lies; None for any other file."""
    steps = path.split("/")[:-1]
    return "/".join(steps[: steps.index(FOLDER)]) if FOLDER in steps else None


def _beside(folder: str, found: Sequence[SourceFile]) -> Sequence[SourceFile]:
    """Return the captures beside the traces of a folder, also where PATHS did not name them."""
    path = Path(folder) / FOLDER
    if is_url(folder) or _owner(f"{folder}/") is not None or not path.is_dir():
        return found
    return (*found, *discover([str(path)]).files)


def with_captures(settings: str, captures: CaptureFiles) -> str:
    """Return the hash of what an analysis depends on beside the trace: settings and captures."""
    if not captures:
        return settings
    words = [settings, *(f"{file.path}\0{file.size}\0{file.mtime_ns}" for file in captures)]
    return xxhash.xxh3_64("\0".join(words).encode(errors="surrogateescape")).hexdigest()
