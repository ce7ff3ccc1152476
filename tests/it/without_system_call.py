"""Runs a program whose system calls with some numbers fail with ENOSYS, as on an older kernel.

Usage: without_system_call.py NUMBER[,NUMBER…] PROGRAM ARGUMENT…
"""

import ctypes
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL_ENOSYS = 0x7FFF0000, 0x00050000 | 38

numbers = [int(number) for number in sys.argv[1].split(",")]
program = [(LOAD_NUMBER, 0, 0, 0)]
for index, number in enumerate(numbers):
    program.append((JUMP_IF_EQUAL, len(numbers) - index, 0, number))
program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, FAIL_ENOSYS)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


libc = ctypes.CDLL(None)
filter = Filter(len(program), ctypes.cast(code, ctypes.c_void_p))
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
    PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter), 0, 0
):
    sys.exit("the filter could not be installed")
os.execvp(sys.argv[2], sys.argv[2:])
