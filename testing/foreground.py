"""Programs as a terminal starts them."""

import signal


def heed_ctrl_c() -> None:
    """This process, and what it starts, ends at Ctrl-C, also where a shell started it as a background job: such a job
    ignores the signal, and what it starts inherits that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
