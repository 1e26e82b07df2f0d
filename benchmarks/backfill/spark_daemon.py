"""The daemon of PySpark's workers, but for one thing: it does not ignore SIGCHLD.

The kernel drops the processor time of children that their parent ignores. So they stay until
the daemon ends, and are then counted by spark_tree.py.
"""
import signal

from pyspark import daemon

as_it_is = signal.signal


def but_for_children(number, handler):
    if number == signal.SIGCHLD and handler == signal.SIG_IGN:
        return signal.getsignal(number)
    return as_it_is(number, handler)


signal.signal = but_for_children
daemon.manager()
