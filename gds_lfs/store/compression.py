"""zstd, where it pays: what hardly shrinks is kept as it is, and found out by a sample."""

from __future__ import annotations

import threading

__all__ = ["compress", "decompress"]

_LEVEL = 3
_WORTH = 0.97
"""What is compressed takes at most this share."""
_SAMPLE, _SAMPLES = 1024, 16


def compress(raw: bytes | memoryview) -> bytes | None:
    """One zstd frame that states its content size; None where it saves less than 3 %."""
    if not _may_shrink(raw):
        return None
    data = _zstd().compressor.compress(raw)
    return data if len(data) <= len(raw) * _WORTH else None


def decompress(data: bytes | memoryview, size: int, dictionary: bytes | None = None) -> bytes:
    """The content of one frame, made with `dictionary` as raw content if any. Raises ValueError where that is damaged,
    or not of this size.
    """
    import zstandard

    try:
        if zstandard.frame_content_size(data) != size:  # also keeps it from filling the memory
            raise ValueError("another size")
        if dictionary is None:
            return _zstd().decompressor.decompress(data)
        raw_content = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        return zstandard.ZstdDecompressor(dict_data=raw_content).decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


class _Zstd(threading.local):
    """A compressor and a decompressor for each thread: making one costs more than using it on a small file."""

    def __init__(self) -> None:
        import zstandard

        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.sampler = zstandard.ZstdCompressor(level=1)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd_state: _Zstd | None = None


def _zstd() -> _Zstd:
    global _zstd_state  # noqa: PLW0603
    if _zstd_state is None:
        _zstd_state = _Zstd()
    return _zstd_state


def _may_shrink(raw: bytes | memoryview) -> bool:
    """False where a sample hardly shrinks: a fifth of the cost of trying it all."""
    if len(raw) < 4 * _SAMPLE:
        return True
    if len(raw) < 16 * _SAMPLE * _SAMPLES:
        middle = len(raw) // 2  # behind whatever a format begins with
        sample = raw[middle - _SAMPLE : middle + _SAMPLE]
        return len(_zstd().sampler.compress(sample)) < len(sample)
    step = len(raw) // _SAMPLES
    sample = b"".join([raw[at : at + _SAMPLE] for at in range(0, step * _SAMPLES, step)])
    return len(_zstd().sampler.compress(sample)) <= len(sample) * 0.99
