"""Signals as a program has them that a terminal starts."""

import signal


def restore_signals() -> None:
    """Ctrl-C and a closed terminal end this process and what it starts, also where a shell started it as a background job
    (which ignores SIGINT and SIGQUIT) or `nohup` did (SIGHUP): whatever such a process starts inherits that.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
