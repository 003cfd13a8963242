"""Just enough ELF to know what a program needs at run time (64-bit, little-endian)."""

import dataclasses
import struct

TRIPLETS = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu"}
ARCHITECTURES = {62: "amd64", 183: "arm64"}

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29


@dataclasses.dataclass
class Elf:
    machine: int
    interpreter: str | None
    needed: list[str]
    search: list[str]  # RPATH or RUNPATH, $ORIGIN not yet replaced


def read(path):
    """The ELF facts of a file, None if it is not an ELF file."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
        file.seek(0)
        data = file.read()
    if data[4:6] != b"\x02\x01":
        raise ValueError(f"{path}: not a 64-bit little-endian ELF file")
    machine, = struct.unpack_from("<H", data, 18)
    table, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loads, dynamic, interpreter = [], None, None
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + i * size)
        if kind == _PT_LOAD:
            loads.append((address, offset, length))
        elif kind == _PT_DYNAMIC:
            dynamic = (offset, length)
        elif kind == _PT_INTERP:
            interpreter = _string(data, offset)
    elf = Elf(machine, interpreter, [], [])
    if dynamic is None:
        return elf
    entries = []
    for position in range(dynamic[0], sum(dynamic), 16):
        tag, value = struct.unpack_from("<QQ", data, position)
        if tag == 0:
            break
        entries.append((tag, value))
    strings = next((_offset(loads, value) for tag, value in entries if tag == _DT_STRTAB), 0)
    for tag, value in entries:
        if tag == _DT_NEEDED:
            elf.needed.append(_string(data, strings + value))
        elif tag in (_DT_RPATH, _DT_RUNPATH):
            elf.search += _string(data, strings + value).split(":")
    return elf


def _string(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


def _offset(loads, address):
    for start, offset, length in loads:
        if start <= address < start + length:
            return address - start + offset
    raise ValueError("the string table is in no segment")
