"""Runs a command and writes what it and all its descendants cost, as JSON (Linux).

    python spark_tree.py FILE COMMAND ARG...

A descendant whose parent is gone becomes a child of this process, which waits for all of
them: nobody's processor time is lost. Exit status: that of the command.
"""
import ctypes
import json
import os
import resource
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def main():
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        return "this system lets a process not adopt its descendants"
    before = time.monotonic()
    child = subprocess.Popen(sys.argv[2:])
    status, seconds = 1, 0.0
    while True:
        try:
            pid, ended = os.wait()
        except ChildProcessError:
            break
        if pid == child.pid:
            status, seconds = os.waitstatus_to_exitcode(ended), time.monotonic() - before
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(sys.argv[1], "w") as f:
        json.dump({"wall_s": seconds, "cpu_s": used.ru_utime + used.ru_stime, "max_rss": used.ru_maxrss << 10}, f)
    return status if status >= 0 else 128 - status


sys.exit(main())
