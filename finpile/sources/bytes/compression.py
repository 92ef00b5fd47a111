"""Decompression frame by frame: behind a damaged frame it continues with the next one.

A frame that cannot be decoded to its end is a gap: `BrokenStream` among the blocks, with the compressed bytes lost. The
next frame is searched for from the failing byte, and a little before, since a decoder may run past the end of a
damaged frame. `limits` bound the decoded bytes; each decoder returns pieces of bounded size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from finpile.config.limits import RATIO_FREE_BYTES, LimitsConfig
from finpile.sources.bytes.frames import (
    Codec,
    Damaged,
    Lost,
    Truncated,
    WindowTooLarge,
    WrongChecksum,
    bzip2,
    gzip,
    lz4,
    xz,
)
from finpile.sources.bytes.frames import zstd as zstandard_frames
from finpile.sources.bytes.streams import (
    BLOCK_BYTES,
    Block,
    BrokenStream,
    ByteStream,
    FrameStart,
    Readable,
    blocks_of,
)

_CODECS: dict[str, Codec] = {".gz": gzip, ".zst": zstandard_frames, ".bz2": bzip2, ".xz": xz, ".lz4": lz4}
_SHORT_SUFFIXES = {".tgz": ".tar.gz", ".tbz2": ".tar.bz2", ".txz": ".tar.xz", ".tzst": ".tar.zst", ".tlz4": ".tar.lz4"}

#: How far before the failing byte the next frame may begin.
_LOOK_BACK_BYTES = 1 << 16
#: Bytes that look like the start of a frame, and are none, above which a file is taken for hostile: from then on no
#: byte is read twice, so that time remains proportional to the size of the file.
_MAX_FALSE_STARTS = 1000
#: Places of the last frame that are tried for the start of another one.
_MAX_RESTS = 16


def split_codecs(path: str) -> tuple[str, list[str]]:
    """The path without the suffixes of its compression, and these, outermost first.

    >>> split_codecs("a/news.jsonl.zst")
    ('a/news.jsonl', ['.zst'])
    """
    codecs: list[str] = []
    while True:
        stem, dot, suffix = path.rpartition(".")
        suffix = (dot + suffix).lower()
        if suffix in _CODECS:
            codecs.append(suffix)
            path = stem
        elif suffix in _SHORT_SUFFIXES:
            path = stem + _SHORT_SUFFIXES[suffix]
        else:
            return path, codecs


#: First bytes of compressed files, for names without a suffix of compression.
_MAGIC = {
    b"\x1f\x8b\x08": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"\xfd7zXZ\0": ".xz",
    b"\x04\x22\x4d\x18": ".lz4",
}


def codec_of(head: bytes) -> list[str]:
    """The compression that a file shows by its first bytes: none, or one.

    >>> codec_of(b"(\\xb5/\\xfd..."), codec_of(b"text")
    (['.zst'], [])
    """
    return [codec for magic, codec in _MAGIC.items() if head.startswith(magic)]


def decompress(
    blocks: Iterator[Block], codec: str, locator: str, limits: LimitsConfig | None = None, start: int = 0
) -> Iterator[Block]:
    """The bytes of all frames, one after the other, and the gaps between them.

    `start` is where the blocks begin in the compressed file.

    Raises: BrokenStream after the last byte that could be decoded, if no frame follows: the input is cut, damaged,
        not of `codec`, or exceeds `limits`.
    """
    return _Decompression(blocks, codec, locator, limits or LimitsConfig(), start).blocks()


def decompressed(
    stream: Readable, codecs: Iterable[str], locator: str, limits: LimitsConfig | None = None, start: int = 0
) -> ByteStream:
    """The bytes of a stream without its compressions, the outermost of which is first; arguments as of `decompress`."""
    for codec in codecs:
        stream = ByteStream(decompress(blocks_of(stream, locator), codec, locator, limits, start), locator, limits)
    return stream if isinstance(stream, ByteStream) else ByteStream(blocks_of(stream, locator), locator, limits)


class _Exceeded(Exception):
    """A limit is exceeded."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


_DEFECTS = (Damaged, Truncated, WrongChecksum, WindowTooLarge, BrokenStream)


@dataclass(slots=True)
class _Gap:
    """A defect behind which no frame has been found yet."""

    defect: Exception
    start: int
    """Where it is, in the compressed bytes."""
    decoded: int
    """Bytes decoded before it."""


class _Decompression:
    """One pass over the frames of an input."""

    def __init__(self, blocks: Iterator[Block], codec: str, locator: str, limits: LimitsConfig, start: int) -> None:
        self._recent: deque[bytes] = deque()  # the blocks read last
        self._num_recent = self._num_out = self._num_frames = self._num_false_starts = 0
        self._start = self._num_in = start  # `_num_in`: up to where it is read
        self._source = ByteStream(self._remembered(blocks), locator, limits, start)
        self._codec = _CODECS[codec]
        self._name = codec
        self._locator = locator
        self._limits = limits

    def blocks(self) -> Iterator[Block]:
        gap: _Gap | None = None
        if self._start:
            yield FrameStart(self._start)  # damage before the first frame has a place too
        while True:
            start = self._source.tell()
            try:
                if not self._is_at_frame():
                    break
                start = self._source.tell()
                is_first = True
                for item in chain(self._codec.frame(self._source, self._limits), [b""]):
                    if gap:
                        yield self._broken(gap, start)
                        gap = None
                    if is_first:
                        yield FrameStart(start)
                        is_first = False
                    if item:
                        yield self._lost(item) if isinstance(item, Lost) else self._counted(item)
                self._num_frames += 1
            except _Exceeded as error:
                raise self._exceeded(error) from error
            except _DEFECTS as defect:
                if isinstance(defect, BrokenStream):
                    self._source.resume()
                self._num_false_starts += gap is not None
                gap = gap or _Gap(defect, self._source.tell(), self._num_out)
                if not self._find_frame(start, defect if gap.defect is defect else None):
                    raise self._broken(gap, None) from defect
        if gap:
            raise self._broken(gap, None)

    def _remembered(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for block in blocks:
            if isinstance(block, FrameStart):  # of another compression within this one
                continue
            if isinstance(block, bytes):
                self._num_in += len(block)
                self._num_recent += len(block)
                self._recent.append(block)
                while self._num_recent - len(self._recent[0]) > _LOOK_BACK_BYTES + BLOCK_BYTES:
                    self._num_recent -= len(self._recent.popleft())
            yield block

    def _counted(self, piece: bytes) -> bytes:
        """A piece within the limits.

        Raises: _Exceeded
        """
        self._num_out += len(piece)
        num_in = self._source.tell() - self._start
        if self._num_out > self._limits.member_bytes:
            raise _Exceeded("too_large", f"more than limits.member ({self._limits.member_bytes}) bytes")
        if self._num_out > max(RATIO_FREE_BYTES, self._limits.ratio * num_in):
            detail = f"{num_in} bytes expand to more than {self._num_out}: limits.ratio is {self._limits.ratio}"
            raise _Exceeded("decompression_bomb", detail)
        return piece

    def _is_at_frame(self) -> bool:
        """Whether anything follows, padding apart."""
        while block := self._source.peek():
            if not (self._num_frames and self._codec.MAY_BE_PADDED and block.startswith(b"\0")):
                return True
            self._source.seek(self._source.tell() + len(block) - len(block.lstrip(b"\0")))
        return False

    # --- behind a defect

    def _find_frame(self, start: int, defect: Exception | None) -> bool:
        """Moves to the next possible start of a frame; `defect` is null for a start that was no frame."""
        if self._source.tell() == start:
            self._source.seek(start + 1)  # else the search would find the same frame for ever
        here = self._source.tell()
        if isinstance(defect, WrongChecksum) and self._is_contiguous():
            return bool(self._source.peek(1))
        if self._num_false_starts < _MAX_FALSE_STARTS:
            self._go_back(max(start + 1, here - _LOOK_BACK_BYTES))
        if isinstance(defect, Truncated):
            return self._find_whole_rest()
        size = max(map(len, self._codec.MARKS))
        data = self._more()
        while len(data) >= size or (more := self._more()):
            data += b"" if len(data) >= size else more
            place = _first(self._codec.MARKS, data)
            if place is not None:
                self._source.unread(data[place:])
                return True
            data = data[len(data) - size + 1 :] if len(data) >= size else data
        return False

    def _find_whole_rest(self) -> bool:
        """Moves to the first frame after which all frames are whole.

        A decoder that reached the end of the input found no defect. Either the input is cut, and the mark of a frame is
        content; or a damaged length led past intact frames, and then these are whole up to the end.
        """
        data = b"".join(iter(self._more, b""))
        place = -1
        for _ in range(_MAX_RESTS):
            found = _first(self._codec.MARKS, data[place + 1 :])
            if found is None:
                break
            place += 1 + found
            if self._is_whole(data[place:]):
                self._source.unread(data[place:])
                return True
        return False

    def _is_whole(self, data: bytes) -> bool:
        source = ByteStream(iter([data]), self._locator, self._limits)
        try:
            while source.peek(1):
                size = sum(len(item) for item in self._codec.frame(source, self._limits) if isinstance(item, bytes))
                if size > max(RATIO_FREE_BYTES, self._limits.ratio * len(data)):
                    return False
        except _DEFECTS:
            return False
        return True

    def _is_contiguous(self) -> bool:
        """Whether the input ends here, or a frame begins."""
        size = max(map(len, self._codec.MARKS))
        head = self._source.read(size)
        self._source.unread(head)
        return not head or head.startswith(self._codec.MARKS)

    def _more(self) -> bytes:
        """The next bytes, over gaps of the input; none at its end."""
        while True:
            try:
                return self._source.read1()
            except BrokenStream:
                self._source.resume()

    def _go_back(self, place: int) -> None:
        recent = b"".join(self._recent)
        first = self._num_in - len(recent)
        here = self._source.tell()
        self._source.unread(recent[max(place - first, 0) : max(here - first, 0)])

    # --- messages

    def _broken(self, gap: _Gap, end: int | None) -> BrokenStream:
        """The gap up to the frame at `end`, or up to the end of the input."""
        defect = gap.defect
        is_contiguous = isinstance(defect, WrongChecksum) and end in (None, gap.start)
        skipped = 0 if is_contiguous else max((self._num_in if end is None else end) - gap.start, 1)
        decoded = f"{gap.decoded} bytes were decoded before"
        reason = "corrupt_file"
        if isinstance(defect, Truncated):
            reason = "truncated_file"
            detail = f"cut after {self._num_in} bytes ({gap.decoded} decoded) inside a {self._name} frame"
            if end is not None:
                reason, detail = "corrupt_file", f"{self._name} data broken at byte {gap.start}"
        elif isinstance(defect, WindowTooLarge):
            reason, detail = "too_large", f"the {self._name} frame at byte {gap.start} {defect}"
        elif isinstance(defect, BrokenStream):
            detail = f"{self._name} data have a gap at byte {gap.start}: {defect.detail}"
        elif not gap.decoded and not self._num_frames and end is None:
            reason, detail = "unreadable_file", f"is not a {self._name} file: {defect}"
        else:
            detail = f"{self._name} data broken at byte {gap.start}: {defect}"
        detail = f"{detail}; {decoded}, {skipped} compressed bytes are skipped"
        return BrokenStream(reason, self._locator, detail, can_resume=end is not None, skipped_bytes=skipped)

    def _lost(self, lost: Lost) -> BrokenStream:
        detail = (
            f"{self._name} data broken before byte {self._source.tell()}: {lost.detail}; {self._num_out} bytes were "
            f"decoded before, {lost.num_bytes} compressed bytes are skipped"
        )
        return BrokenStream("corrupt_file", self._locator, detail, can_resume=True, skipped_bytes=lost.num_bytes)

    def _exceeded(self, error: _Exceeded) -> BrokenStream:
        start = self._source.tell()
        for _ in iter(self._more, b""):
            pass
        skipped = self._num_in - start
        detail = f"{error}; {self._num_out} bytes were decoded, {skipped} compressed bytes are skipped"
        return BrokenStream(error.reason, self._locator, detail, skipped_bytes=skipped)


def _first(marks: tuple[bytes, ...], data: bytes) -> int | None:
    return min((place for mark in marks if (place := data.find(mark)) >= 0), default=None)
