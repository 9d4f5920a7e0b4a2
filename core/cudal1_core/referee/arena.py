"""Memory shared between the trusted side and a runner: one dedicated allocation an arena, nothing else in it.

On the CPU a sealed memfd. On CUDA a VMM allocation (cuMemCreate) whose POSIX descriptor travels over a socket;
torch's own IPC must not be used, since a handle to a small tensor maps its whole 2 MiB segment.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from dataclasses import dataclass
from typing import Any

import torch

ALIGNMENT = 256  # bytes between the starts of two slots


@dataclass(frozen=True)
class Arena:
    """`data` is the whole arena as uint8 on its device; whoever made it may send `fd` to another process."""

    device: str
    nbytes: int
    fd: int
    data: torch.Tensor
    handle: Any = None  # keeps the mapping alive

    def view(self, offset: int, dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
        """A tensor inside the arena; `offset` in bytes, `strides` in elements."""
        flat = self.data[offset:].view(dtype) if not offset % dtype.itemsize else None
        if flat is None:
            raise ValueError("offset not aligned")
        return flat.as_strided(shape, strides)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


def create(device: str, nbytes: int) -> Arena:
    """A fresh arena of at least `nbytes` bytes, zero filled."""
    nbytes = max(nbytes, 4096)
    if torch.device(device).type == "cuda":
        return _create_cuda(device, nbytes)
    fd = os.memfd_create("cudal1", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    os.ftruncate(fd, nbytes)
    # without the seals a runner could shrink the file and kill whoever reads it
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return _map_memfd(device, nbytes, fd)


def alone(device: str, nbytes: int) -> Arena:
    """Memory laid out like an arena that is shared with nobody."""
    return Arena(device, nbytes, -1, torch.zeros(nbytes, dtype=torch.uint8, device=device))


def attach(device: str, nbytes: int, fd: int) -> Arena:
    """Maps an arena made by another process. The descriptor is closed: the mapping lives without it."""
    try:
        if torch.device(device).type == "cuda":
            return _attach_cuda(device, nbytes, fd)
        return _map_memfd(device, nbytes, fd)
    finally:
        os.close(fd)


def _map_memfd(device: str, nbytes: int, fd: int) -> Arena:
    mapping = mmap.mmap(fd, nbytes)
    data = torch.frombuffer(mapping, dtype=torch.uint8)
    return Arena(device, nbytes, fd, data, mapping)


class _CudaPointer:
    """Lets torch wrap a raw device address without copying."""

    def __init__(self, address: int, nbytes: int, keep: Any) -> None:
        self.keep = keep
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _driver() -> Any:
    from cuda.bindings import driver

    return driver


def _call(result: tuple[Any, ...]) -> Any:
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA driver: {status}")
    return values[0] if len(values) == 1 else values or None


def _allocation_properties(index: int) -> Any:
    driver = _driver()
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = index
    properties.requestedHandleTypes = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    return properties


def _index(device: str) -> int:
    torch.cuda.init()  # type: ignore[no-untyped-call]
    index = torch.device(device).index
    return torch.cuda.current_device() if index is None else index


def _map_cuda(device: str, nbytes: int, handle: Any, fd: int) -> Arena:
    driver = _driver()
    index = _index(device)
    torch.zeros(1, device=device)  # makes the primary context current
    address = _call(driver.cuMemAddressReserve(nbytes, 0, driver.CUdeviceptr(0), 0))
    _call(driver.cuMemMap(address, nbytes, 0, handle, 0))
    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = index
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    _call(driver.cuMemSetAccess(address, nbytes, [access], 1))
    mapping = _CudaMapping(int(address), nbytes, handle)
    data = torch.as_tensor(_CudaPointer(int(address), nbytes, mapping), device=device)
    return Arena(device, nbytes, fd, data, mapping)


class _CudaMapping:
    """Unmaps and releases when the last tensor of the arena is gone."""

    def __init__(self, address: int, nbytes: int, handle: Any) -> None:
        self.address, self.nbytes, self.handle = address, nbytes, handle
        self.driver = _driver()

    def __del__(self) -> None:
        driver = self.driver
        driver.cuCtxSynchronize()
        driver.cuMemUnmap(self.address, self.nbytes)
        driver.cuMemAddressFree(self.address, self.nbytes)
        driver.cuMemRelease(self.handle)


def _create_cuda(device: str, nbytes: int) -> Arena:
    driver = _driver()
    index = _index(device)
    torch.zeros(1, device=device)
    properties = _allocation_properties(index)
    granularity = _call(
        driver.cuMemGetAllocationGranularity(
            properties, driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
        )
    )
    nbytes = -(-nbytes // granularity) * granularity
    handle = _call(driver.cuMemCreate(nbytes, properties, 0))
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    fd = int(_call(driver.cuMemExportToShareableHandle(handle, kind, 0)))
    arena = _map_cuda(device, nbytes, handle, fd)
    arena.data.zero_()
    return arena


def _attach_cuda(device: str, nbytes: int, fd: int) -> Arena:
    driver = _driver()
    _index(device)
    torch.zeros(1, device=device)
    kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    handle = _call(driver.cuMemImportFromShareableHandle(fd, kind))
    return _map_cuda(device, nbytes, handle, fd)
