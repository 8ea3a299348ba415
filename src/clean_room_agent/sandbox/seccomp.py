"""The filter of system calls: a classic BPF program that bubblewrap loads.

It is the second line of defence: most of what it refuses is also refused for lack of capabilities. It alone refuses new
user namespaces on kernels and bubblewraps that would allow them, tracing, keyrings, io_uring, pushing characters into a
terminal, setuid files, sockets of unusual families, and memory that belongs to no process.
"""

import errno
import platform
import struct
from typing import Literal

from msgspec import Struct

LOAD, JUMP_EQUAL, JUMP_SET, JUMP_GREATER_EQUAL, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16
X32_CALLS = 0x40000000
X86_64, AARCH64 = 0xC000003E, 0xC00000B7

OWNER_BITS = 0o6000
NEW_NAMESPACES = 0x7E020000
"""CLONE_NEW*: user, pid, net, ipc, uts, cgroup, mount."""
CREATE, NAMELESS = 0o100, 0o20000000
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6; AF_NETLINK, by which libraries ask for addresses."""
LARGE_SEGMENT = 1 << 16
MANY_SEMAPHORES = 64
DUMPABLE = 4
"""PR_SET_DUMPABLE: a process that is not dumpable hides its memory usage."""
PUSH_CHARACTER, PASTE = 0x5412, 0x541C
"""TIOCSTI, TIOCLINUX."""


class ArgumentTest(Struct, frozen=True, kw_only=True):
    """A condition on the low half of a call's argument: how it compares with `value`."""

    argument: int
    value: int
    how: Literal["shares bits", "equals", "differs", "is at least"] = "shares bits"
    high: bool = False
    """Whether the argument's high half is compared."""


class CallRule(Struct, frozen=True, kw_only=True):
    """A call that fails with `error` if all `tests` hold; its number on (x86_64, aarch64), None where it does not
    exist.
    """

    numbers: tuple[int | None, int | None]
    tests: tuple[ArgumentTest, ...] = ()
    error: int = errno.EPERM


REFUSED: dict[str, tuple[int, int]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""Calls that no test needs: (number on x86_64, on aarch64)."""

CONDITIONAL: tuple[CallRule, ...] = (
    CallRule(numbers=(56, 220), tests=(ArgumentTest(argument=0, value=NEW_NAMESPACES),)),  # clone
    # clone3: its flags cannot be seen; libraries then take clone
    CallRule(numbers=(435, 435), error=errno.ENOSYS),
    CallRule(numbers=(437, 437), error=errno.ENOSYS),  # openat2: the same, for the mode of a new file
    # ioctl
    CallRule(numbers=(16, 29), tests=(ArgumentTest(argument=1, value=PUSH_CHARACTER, how="equals"),)),
    CallRule(numbers=(16, 29), tests=(ArgumentTest(argument=1, value=PASTE, how="equals"),)),
    CallRule(numbers=(90, None), tests=(ArgumentTest(argument=1, value=OWNER_BITS),)),  # chmod
    CallRule(numbers=(91, 52), tests=(ArgumentTest(argument=1, value=OWNER_BITS),)),  # fchmod
    CallRule(numbers=(268, 53), tests=(ArgumentTest(argument=2, value=OWNER_BITS),)),  # fchmodat
    CallRule(numbers=(452, 452), tests=(ArgumentTest(argument=2, value=OWNER_BITS),)),  # fchmodat2
    CallRule(numbers=(85, None), tests=(ArgumentTest(argument=1, value=OWNER_BITS),)),  # creat
    CallRule(numbers=(133, None), tests=(ArgumentTest(argument=1, value=OWNER_BITS),)),  # mknod
    CallRule(numbers=(259, 33), tests=(ArgumentTest(argument=2, value=OWNER_BITS),)),  # mknodat
    CallRule(
        numbers=(2, None),
        tests=(ArgumentTest(argument=1, value=CREATE | NAMELESS), ArgumentTest(argument=2, value=OWNER_BITS)),
    ),  # open
    CallRule(
        numbers=(257, 56),
        tests=(ArgumentTest(argument=2, value=CREATE | NAMELESS), ArgumentTest(argument=3, value=OWNER_BITS)),
    ),  # openat
    # Families of sockets that know no network namespace (AF_VSOCK), or open large parts of the kernel.
    CallRule(
        numbers=(41, 198),
        tests=tuple(ArgumentTest(argument=0, value=family, how="differs") for family in FAMILIES),
        error=errno.EAFNOSUPPORT,
    ),  # socket
    # io_setup: one such call can take all that the machine has
    CallRule(numbers=(206, 0), error=errno.ENOSYS),
    # Memory that no process holds, and that is not counted therefore; libraries then take /dev/shm, which is bounded.
    CallRule(numbers=(319, 279), error=errno.ENOSYS),  # memfd_create
    CallRule(numbers=(447, 447), error=errno.ENOSYS),  # memfd_secret
    CallRule(numbers=(68, 186), error=errno.ENOSYS),  # msgget
    CallRule(
        numbers=(29, 194),
        tests=(ArgumentTest(argument=1, value=LARGE_SEGMENT + 1, how="is at least"),),
        error=errno.EINVAL,
    ),  # shmget: databases lock by a small one
    CallRule(
        numbers=(29, 194),
        tests=(ArgumentTest(argument=1, value=1, how="is at least", high=True),),
        error=errno.EINVAL,
    ),
    CallRule(
        numbers=(64, 190),
        tests=(ArgumentTest(argument=1, value=MANY_SEMAPHORES + 1, how="is at least"),),
        error=errno.EINVAL,
    ),  # semget
    CallRule(
        numbers=(157, 167),
        tests=(
            ArgumentTest(argument=0, value=DUMPABLE, how="equals"),
            ArgumentTest(argument=1, value=1, how="differs"),
        ),
    ),  # prctl
)


def filter_program(machine: str | None = None) -> bytes | None:
    """The filter for `machine` (this one by default); None if there is none for it. Calls with the numbers of another
    architecture kill the process, those of x32 fail.
    """
    kinds = {"x86_64": (X86_64, 0), "amd64": (X86_64, 0), "aarch64": (AARCH64, 1), "arm64": (AARCH64, 1)}
    kind = kinds.get((machine or platform.machine()).lower())
    if kind is None:
        return None
    code, column = kind
    program = [
        _instruction(LOAD, MACHINE_AT),
        _instruction(JUMP_EQUAL, code, 1, 0),
        _instruction(RETURN, KILL),
    ]
    if code == X86_64:
        program += [
            _instruction(LOAD, NUMBER_AT),
            _instruction(JUMP_GREATER_EQUAL, X32_CALLS, 0, 1),
            _instruction(RETURN, FAIL | errno.EPERM),
        ]
    for rule in (*(CallRule(numbers=numbers) for _, numbers in sorted(REFUSED.items())), *CONDITIONAL):
        number = rule.numbers[column]
        if number is not None:
            program += _rule_instructions(number, rule)
    return b"".join([*program, _instruction(RETURN, ALLOW)])


def _rule_instructions(number: int, rule: CallRule) -> list[bytes]:
    """The instructions for one rule; they fall through if it is a different call, or a test does not hold."""
    left = 2 * len(rule.tests) + 1
    block = [_instruction(LOAD, NUMBER_AT), _instruction(JUMP_EQUAL, number, 0, left)]
    for test in rule.tests:
        left -= 2
        at = ARGUMENTS_AT + 8 * test.argument + 4 * test.high
        jump = {"equals": JUMP_EQUAL, "differs": JUMP_EQUAL, "is at least": JUMP_GREATER_EQUAL}
        ways = (left, 0) if test.how == "differs" else (0, left)
        block += [_instruction(LOAD, at), _instruction(jump.get(test.how, JUMP_SET), test.value, *ways)]
    return [*block, _instruction(RETURN, FAIL | rule.error)]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
