"""Attempts to escape from the sandbox. `suite` sends this into it as one program with `helpers.py`, which stands before it and
defines the names imported here; nothing imports it.

Reads one JSON object from its argument, prints a line `name TAB reached|refused TAB detail` for each attempt, and
leaves traces outside wherever it can: `suite` looks for those too, and does not take its word alone.
"""

import ctypes
import os
import resource
import socket
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testing.escapes.helpers import (
        FACTS,
        MARK,
        call,
        capabilities,
        connect,
        fill,
        find_record,
        fork_in_namespace,
        grow,
        kill_outside,
        leave_daemon,
        link_out,
        listed,
        lower_oom,
        made,
        old_numbers,
        open_files,
        open_for_writing,
        privileges,
        push_character,
        push_into_own_terminal,
        raise_limit,
        read,
        refuse,
        replace_git,
        rewrite_git,
        run,
        search,
        search_environment,
        see_others,
        setuid_file,
        unseen,
        use_first_process,
        write,
        write_record,
    )

HOME, AT, COMMON = FACTS["home"], FACTS["at"], FACTS["common"]
STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM
BUFFER = ctypes.create_string_buffer(128)

ATTEMPTS: dict[str, Callable[[], object]] = {
    # reading what is private
    "read an ssh key": lambda: read(HOME + "/.ssh/id_rsa"),
    "list the home": lambda: listed(HOME, names=(".ssh", ".bashrc", ".aws")),
    "read cloud credentials": lambda: read(HOME + "/.aws/credentials"),
    "read the user's .env": lambda: read(AT + "/.env"),
    "find the record": find_record,
    "read the outside folder": lambda: listed(FACTS["outside"]),
    "read the tree by its own path": lambda: listed(FACTS["tree"]),
    "read /etc/shadow": lambda: read("/etc/shadow"),
    "read /etc/machine-id": lambda: read("/etc/machine-id"),
    "list keys of the system": lambda: listed("/etc/ssl/private"),
    "read git's configuration": lambda: read(COMMON + "/config"),
    "read a password in git's configuration": lambda: (
        "found" if "token" in open("/run/cra-git/config").read() else refuse("not in it")
    ),
    "read git's credentials": lambda: read("/run/cra-git/credentials"),
    "read included configuration of git's": lambda: read("/run/cra-git/config.more"),
    "read a submodule's configuration": lambda: read("/run/cra-git/modules/m/config"),
    "read another worktree's configuration": lambda: read("/run/cra-git/worktrees/o/config.worktree"),
    "search git's folder": lambda: search("/run/cra-git"),
    "read a secret variable": lambda: os.environ["CRA_SECRET"],
    "read variables of other processes": search_environment,
    "read files left open": open_files,
    "read the kernel's log": lambda: call(103, 116, 3, BUFFER, 128),
    "read the kernel's memory": lambda: open("/proc/kcore", "rb").read(64) or refuse("empty"),
    "read the kernel's keys": lambda: read("/proc/keys"),
    "read a disk": lambda: listed(
        "/dev", names=("sda", "vda", "nvme0n1", "mem", "kmem", "kmsg", "fuse", "kvm")
    ),
    # writing outside
    "write into the home": lambda: unseen(write(HOME + "/.bashrc")),
    "write into the user's tree": lambda: unseen(write(AT + "/.env")),
    "write into the record": lambda: unseen(write_record()),
    "write into /etc": lambda: write("/etc/" + MARK),
    "write into /usr": lambda: write("/usr/" + MARK),
    "write into /opt": lambda: write("/opt/" + MARK),
    "write into the root folder": lambda: write("/" + MARK),
    "write into /dev": lambda: write("/dev/" + MARK),
    "write into a mounted environment": lambda: write(AT + "/.venv/written"),
    "replace a mounted environment": lambda: os.rename(AT + "/.venv", AT + "/.venv2"),
    "write by a link": lambda: link_out(".profile"),
    "link a key into the tree": lambda: os.link(HOME + "/.ssh/id_rsa", AT + "/hard"),
    "replace .git": replace_git,
    "rewrite .git": rewrite_git,
    "remove .git": lambda: os.unlink(AT + "/.git"),
    "write a git hook": lambda: write(COMMON + "/hooks/pre-commit"),
    "write git's configuration": lambda: write("/run/cra-git/config"),
    "write a ref": lambda: write("/run/cra-git/refs/heads/written"),
    "make a block device": lambda: os.mknod(AT + "/disk", stat.S_IFBLK | 0o600, os.makedev(254, 0)),
    "make a character device": lambda: os.mknod(AT + "/mem", stat.S_IFCHR | 0o600, os.makedev(1, 1)),
    "leave a setuid file by chmod": lambda: setuid_file("chmod"),
    "leave a setuid file by open": lambda: setuid_file("open"),
    "leave a setuid file by mknod": lambda: setuid_file("mknod"),
    # the system's settings
    "set core_pattern": lambda: open_for_writing("/proc/sys/kernel/core_pattern"),
    "set modprobe": lambda: open_for_writing("/proc/sys/kernel/modprobe"),
    "drop caches": lambda: open_for_writing("/proc/sys/vm/drop_caches"),
    "press a system key": lambda: open_for_writing("/proc/sysrq-trigger"),
    "reach /sys": lambda: listed("/sys/kernel"),
    "set the clock": lambda: call(227, 112, 0, None),
    "lower the score of the memory killer": lower_oom,
    "raise the bound of files": lambda: raise_limit(resource.RLIMIT_FSIZE),
    # mounts and namespaces
    "remount the root": lambda: call(165, 40, None, b"/", None, 32 | 4096, None),
    "mount a file system": lambda: call(165, 40, b"none", b"/tmp", b"tmpfs", 0, None),
    "unmount the tree": lambda: call(166, 39, AT.encode(), 2),
    "open a mount": lambda: call(428, 428, -100, b"/", 1),
    "open a file system": lambda: call(430, 430, b"tmpfs", 0),
    "change the root": lambda: os.chroot("/tmp"),
    "pivot the root": lambda: call(155, 41, b"/tmp", b"/tmp"),
    "unshare the user namespace": lambda: call(272, 97, 0x10000000),
    "unshare the mounts": lambda: call(272, 97, 0x00020000),
    "fork into a user namespace": fork_in_namespace,
    "clone3 into a user namespace": lambda: call(435, 435, BUFFER, 88),
    "join another namespace": lambda: call(308, 268, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0),
    "open a file by handle": lambda: call(304, 265, -100, BUFFER, 0),
    "leave by the first process's root": lambda: listed("/proc/1/root" + HOME, names=(".ssh",)),
    "leave by the first process's folder": lambda: listed(
        "/proc/1/cwd/../../../../../.." + HOME, names=(".ssh",)
    ),
    # rights
    "keep capabilities": capabilities,
    "gain privileges": privileges,
    "become root by setuid": lambda: os.setuid(0),
    "become root by su": lambda: run("su", "-c", "id"),
    "become root by sudo": lambda: run("sudo", "-n", "id"),
    # processes
    "kill a process outside": kill_outside,
    "see processes outside": see_others,
    "read a process outside": lambda: read(f"/proc/{FACTS['victim']}/environ"),
    "trace a process": lambda: call(101, 117, 16, os.getppid(), 0, 0),
    "be traced": lambda: call(101, 117, 0, 0, 0, 0),
    "read another's memory": lambda: call(310, 270, os.getppid(), BUFFER, 1, BUFFER, 1, 0),
    "use the first process's rights": use_first_process,
    "take an open file": lambda: call(438, 438, os.pidfd_open(1) if hasattr(os, "pidfd_open") else 3, 1, 0),
    "leave a daemon": leave_daemon,
    # the kernel's larger doors
    "load a program into the kernel": lambda: call(321, 280, 0, BUFFER, 72),
    "ask for a key": lambda: call(250, 219, 0, -3, 0),
    "add a key": lambda: call(248, 217, b"user", b"cra", b"x", 1, -3),
    "take all asynchronous reads": lambda: call(206, 0, 60000, ctypes.create_string_buffer(8)),
    "watch the kernel's pressure": lambda: open("/proc/pressure/memory", "r+").write("some 150000 1000000"),
    "set up io_uring": lambda: call(425, 425, 1, ctypes.create_string_buffer(120)),
    "handle page faults": lambda: call(323, 282, 1),
    "count events": lambda: call(298, 241, BUFFER, 0, -1, -1, 0),
    "load a module": lambda: call(175, 105, BUFFER, 0, b""),
    "load a kernel": lambda: call(246, 104, 0, 99, None, 0),
    "use other numbers for calls": old_numbers,
    "push a character into the terminal": push_character,
    "push a character into an own terminal": push_into_own_terminal,
    # the network
    "reach loopback outside": lambda: connect(socket.AF_INET, STREAM, ("127.0.0.1", FACTS["tcp"])),
    "send a datagram outside": lambda: unseen(connect(socket.AF_INET, DATAGRAM, ("127.0.0.1", FACTS["udp"]))),
    "reach loopback outside by IPv6": lambda: connect(socket.AF_INET6, STREAM, ("::1", FACTS["tcp"])),
    "reach the network": lambda: connect(socket.AF_INET, STREAM, ("192.0.2.1", 9)),
    "send to the network": lambda: connect(socket.AF_INET, DATAGRAM, ("192.0.2.1", 9)),
    "ask for a name": lambda: socket.getaddrinfo("example.com", 80),
    "see network cards": lambda: (
        [name for _, name in socket.if_nameindex() if name != "lo"] or refuse("lo alone")
    ),
    "open a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
    "open a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close(),
    "open a socket to the virtual machine's host": lambda: socket.socket(40, STREAM).close(),
    "open a socket of the kernel's ciphers": lambda: socket.socket(38, socket.SOCK_SEQPACKET).close(),
    "open a Bluetooth socket": lambda: socket.socket(31, socket.SOCK_RAW, 1).close(),
    "reach an abstract socket": lambda: connect(socket.AF_UNIX, STREAM, "\0" + FACTS["abstract"]),
    "reach a socket by its path": lambda: connect(socket.AF_UNIX, STREAM, FACTS["socket"]),
    "reach a socket below a read-only mount": lambda: connect(
        socket.AF_UNIX, STREAM, AT + "/.venv/lib/agent.sock"
    ),
    "reach the ssh agent": lambda: connect(socket.AF_UNIX, STREAM, os.environ["SSH_AUTH_SOCK"]),
    "reach the message bus": lambda: listed("/run/dbus"),
    "reach a container engine": lambda: os.stat("/run/docker.sock").st_mode,
    "reach the user's runtime folder": lambda: listed("/run/user"),
    # filling what is there
    "hold memory in a nameless file": lambda: os.memfd_create("held"),
    "hold memory in a System V segment": lambda: made(29, 194, 0, ctypes.c_size_t(1 << 20), 0o1600),
    "hold memory in a System V segment beyond 4 GiB": lambda: made(
        29, 194, 0, ctypes.c_size_t((1 << 32) + 1), 0o1600
    ),
    "hold memory in System V semaphores": lambda: made(64, 190, 0, 32000, 0o1600),
    "hold memory in System V messages": lambda: made(68, 186, 0, 0o1600),
    "hide what a process holds": lambda: call(157, 167, 4, 0, 0, 0, 0),
    "fill /tmp": lambda: fill("/tmp/full"),
    "fill /dev/shm": lambda: fill("/dev/shm/full"),
    "fill the home": lambda: fill(HOME + "/full"),
    "grow a file beyond the bound": grow,
}

if __name__ == "__main__":
    for name, attempt in ATTEMPTS.items():
        try:
            word, detail = "reached", attempt()
        except BaseException as error:
            word, detail = "refused", f"{type(error).__name__} {error}"
        line = " ".join(str(detail).split())[:100]
        print(f"{name}\t{word}\t{line}", flush=True)
