"""A flat NumPy file: all tokens in one row, for `np.load(path, mmap_mode="r")`.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import numpy as np

from finpile import storage
from finpile.tokens.export import Export
from finpile.tokens.store import TokenStore

NAME = "tokens.npy"


def write_npy(store: TokenStore, folder: str) -> tuple[list[str], int]:
    """Writes the file; returns its name and the number of tokens."""
    dtype = store.meta.dtype.newbyteorder("<")
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (store.num_tokens,)}
    with storage.write_atomically(storage.join(folder, NAME)) as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for ids in store.tokens():
            stream.write(ids.astype(dtype, copy=False).tobytes())
    return [NAME], store.num_tokens


EXPORT = Export(name="npy", write=write_npy, entries="tokens")
