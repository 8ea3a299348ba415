"""The filter's program, run by a small interpreter of its own."""

import errno
import struct

import pytest

from clean_room_agent.sandbox.seccomp import (
    AARCH64,
    ALLOW,
    CONDITIONAL,
    FAIL,
    KILL,
    REFUSED,
    X86_64,
    filter_program,
)

MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1)}
machines = pytest.mark.parametrize("machine", list(MACHINES))


def verdict(machine: str, number: int, *arguments: int, code: int | None = None) -> int:
    """What the kernel would do with the call."""
    program = filter_program(machine)
    assert program is not None
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=iIQ6Q", number, code or MACHINES[machine][0], 0, *padded)
    steps = list(struct.iter_unpack("HBBI", program))
    at, value = 0, 0
    while True:
        kind, if_true, if_false, operand = steps[at]
        at += 1
        if kind == 0x06:
            return int(operand)
        if kind == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        else:
            holds = {0x15: value == operand, 0x45: value & operand != 0, 0x35: value >= operand}[kind]
            at += if_true if holds else if_false


@machines
def test_every_listed_call_is_refused_and_its_neighbours_are_not(machine: str) -> None:
    column = MACHINES[machine][1]
    listed = {numbers[column] for numbers in REFUSED.values()}
    conditional = {rule.numbers[column] for rule in CONDITIONAL}
    for number in range(460):
        if number not in conditional:
            expected = FAIL | errno.EPERM if number in listed else ALLOW
            assert verdict(machine, number) == expected, number


@machines
def test_owner_bits_are_refused_and_other_modes_are_not(machine: str) -> None:
    fchmodat = (268, 53)[MACHINES[machine][1]]
    assert verdict(machine, fchmodat, 0, 0, 0o755) == ALLOW
    for mode in (0o4755, 0o2755, 0o6000):
        assert verdict(machine, fchmodat, 0, 0, mode) == FAIL | errno.EPERM


@machines
def test_a_mode_counts_only_where_a_file_is_made(machine: str) -> None:
    openat = (257, 56)[MACHINES[machine][1]]
    assert verdict(machine, openat, 0, 0, 0, 0o4755) == ALLOW
    assert verdict(machine, openat, 0, 0, 0o100, 0o644) == ALLOW
    assert verdict(machine, openat, 0, 0, 0o101, 0o4755) == FAIL | errno.EPERM


@machines
def test_processes_and_threads_are_made_but_no_namespaces(machine: str) -> None:
    clone = (56, 220)[MACHINES[machine][1]]
    assert verdict(machine, clone, 17) == ALLOW
    assert verdict(machine, clone, 0x3D0F00) == ALLOW
    for flag in (0x10000000, 0x00020000, 0x40000000):
        assert verdict(machine, clone, flag | 17) == FAIL | errno.EPERM
    assert verdict(machine, 435) == FAIL | errno.ENOSYS


def test_another_machine_s_calls_kill_and_x32_s_fail() -> None:
    assert verdict("x86_64", 39, code=0x40000003) == KILL
    assert verdict("x86_64", 0x40000000 + 39) == FAIL | errno.EPERM


def test_a_machine_without_numbers_has_no_filter() -> None:
    assert filter_program("riscv64") is None


@machines
def test_sockets_of_the_usual_families_alone_are_made(machine: str) -> None:
    socket = (41, 198)[MACHINES[machine][1]]
    for family in range(64):
        expected = ALLOW if family in {1, 2, 10, 16} else FAIL | errno.EAFNOSUPPORT
        assert verdict(machine, socket, family, 1, 0) == expected, family


@machines
def test_memory_that_belongs_to_no_process_is_not_made_in_bulk(machine: str) -> None:
    column = MACHINES[machine][1]
    memfd_create, shmget, semget, msgget = (
        numbers[column] for numbers in ((319, 279), (29, 194), (64, 190), (68, 186))
    )
    assert verdict(machine, memfd_create) == verdict(machine, msgget) == FAIL | errno.ENOSYS
    assert verdict(machine, shmget, 0, 56) == verdict(machine, shmget, 0, 1 << 16) == ALLOW
    for size in ((1 << 16) + 1, 1 << 30, 1 << 32, (1 << 40) + 56):
        assert verdict(machine, shmget, 0, size) == FAIL | errno.EINVAL
    assert verdict(machine, semget, 0, 17) == ALLOW
    assert verdict(machine, semget, 0, 32000) == FAIL | errno.EINVAL


@machines
def test_no_process_hides_what_it_holds(machine: str) -> None:
    prctl = (157, 167)[MACHINES[machine][1]]
    assert verdict(machine, prctl, 4, 0) == verdict(machine, prctl, 4, 2) == FAIL | errno.EPERM
    assert verdict(machine, prctl, 4, 1) == verdict(machine, prctl, 15, 0) == ALLOW
