"""Linux's Landlock: this thread, what it starts from now on, and their programs connect by TCP to named ports only.

It holds below every library and also for programs that are started, and can't be taken back. It knows ports, not hosts,
and neither UDP nor DNS. Kernels have it for TCP since 6.7 (ABI 4). The numbers are those of ``linux/landlock.h``; the
system calls have the same numbers on every architecture that Python runs on.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable

__all__ = ["abi", "restrict_tcp"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION = 1
_CONNECT_TCP = 1 << 1
_RULE_NET_PORT = 2
_PR_SET_NO_NEW_PRIVS = 38


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64), ("handled_access_net", ctypes.c_uint64))


class _NetPort(ctypes.Structure):
    _fields_ = (("allowed_access", ctypes.c_uint64), ("port", ctypes.c_uint64))


def abi() -> int:
    """The version of Landlock in this kernel; 0 where there is none. TCP rules need 4."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), _GET_VERSION)))


def restrict_tcp(ports: Iterable[int]) -> None:
    """From now on this thread and all that it starts connect by TCP to these ports only, for ever.

    Raises:
        OSError: the kernel can't or won't.
    """
    if abi() < 4:
        raise OSError("this kernel has no Landlock rules for TCP (Linux 6.7 has them)")
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *args: object) -> int:
        result = int(libc.syscall(ctypes.c_long(number), *args))
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    handled = _Ruleset(0, _CONNECT_TCP)
    ruleset = call(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(ctypes.sizeof(handled)), 0)
    try:
        for port in sorted(set(ports)):
            rule = _NetPort(_CONNECT_TCP, port)
            call(_ADD_RULE, ruleset, _RULE_NET_PORT, ctypes.byref(rule), 0)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
