"""A process that is linked with Slurm's own library and asks slurmctld for single nodes and jobs, for `single.py`.

scontrol has every node sent to it to print one: 65 to 170 ms with 10,000 nodes, and one millisecond so. It needs no
layout of any structure: the library itself prints what it got, in the very words of scontrol, in every version. What it
does not print is a node's partitions; so it tells with each answer whether partitions changed since the last one.

A process of its own, because the library may end the process that it is in, or hang. It imports as little as it can,
and nothing of Steward: `python -I -S single_child.py LIBRARY`, then a line for each question: names of nodes, or `#`
and numbers of jobs. The answer is a line, `ok SERIAL BYTES` and so many bytes, or `no`. SERIAL is another one when
partitions changed, and 0 for jobs: of each the bytes are its length, a newline and what the library prints of it.
"""

import ctypes
import os
import sys

_SHOW_ALL = ctypes.c_uint16(1)
# The library leaves its error numbers in errno: slurm_get_errno, which only tells that, is gone with 26.05.
_NO_CHANGE = 1900
"""Slurm's error number for "nothing changed since"."""
_NO_JOB = 2017
"""Slurm's error number for a job that it does not hold."""
_PARTITIONS = "Partition data as of "
_JOB = "Job data as of "
_ONE = ", record count 1"
JOBS = "#"


class Failure(Exception):
    """The library said no."""


class Asker:
    def __init__(self, library: str) -> None:
        """Raises OSError or AttributeError where it is no such library."""
        self._slurm = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL, use_errno=True)
        self._c = ctypes.CDLL(None)
        self._c.open_memstream.restype = ctypes.c_void_p
        self._slurm.slurm_init(None)
        self._serial, self._since, self._parts = 0, 0, ""

    def nodes(self, names: list[str]) -> str:
        """The library's text on each node."""
        return "".join(self._node(name) for name in names)

    def jobs(self, ids: list[str]) -> bytes:
        """The texts of jobs, each after its length, because a job's name may hold anything. Libraries of 24.11 and
        later cannot print a job: then each text is empty."""
        prints = hasattr(self._slurm, "slurm_print_job_info_msg")
        told = [self._job(int(id)).encode() if prints else b"" for id in ids]
        return b"".join(b"%d\n" % len(text) + text for text in told)

    def _job(self, id: int) -> str:
        """Empty: Slurm does not hold it, or tells of several by that number."""
        found = ctypes.c_void_p()
        if self._slurm.slurm_load_job(ctypes.byref(found), ctypes.c_uint32(id), _SHOW_ALL):
            if ctypes.get_errno() == _NO_JOB:
                return ""
            raise Failure
        told = self._printed(self._slurm.slurm_print_job_info_msg, found)
        self._slurm.slurm_free_job_info_msg(found)
        head, _, rest = told.partition("\n")
        if not head.startswith(_JOB):
            raise Failure
        return rest if head.endswith(_ONE) else ""

    def serial(self) -> int:
        """Slurm says itself that there was no change; where it does not, what it has is compared."""
        found = ctypes.c_void_p()
        if self._slurm.slurm_load_partitions(ctypes.c_long(self._since), ctypes.byref(found), _SHOW_ALL):
            if ctypes.get_errno() != _NO_CHANGE or not self._serial:
                raise Failure
            return self._serial
        if not hasattr(self._slurm, "slurm_print_partition_info_msg"):
            return self._loaded_anew(found)
        told = self._printed(self._slurm.slurm_print_partition_info_msg, found)
        self._slurm.slurm_free_partition_info_msg(found)
        head, _, rest = told.partition("\n")
        if not head.startswith(_PARTITIONS):
            raise Failure
        parts = "\n".join(map(_name_and_nodes, rest.splitlines()))
        if parts != self._parts or not self._serial:
            self._serial, self._parts = self._serial + 1, parts
        self._since = int(head.removeprefix(_PARTITIONS).partition(",")[0])
        return self._serial

    def _loaded_anew(self, found: ctypes.c_void_p) -> int:
        """A number for the state of the partitions, where the library cannot print them (26.05): any change counts as
        new. The answer's first word is its time."""
        since = ctypes.cast(found, ctypes.POINTER(ctypes.c_long))[0]
        self._slurm.slurm_free_partition_info_msg(found)
        if not 0 < since < 1 << 32:
            raise Failure
        self._serial, self._since = self._serial + 1, since
        return self._serial

    def _node(self, name: str) -> str:
        found = ctypes.c_void_p()
        if self._slurm.slurm_load_node_single(ctypes.byref(found), name.encode(), _SHOW_ALL):
            raise Failure
        told = self._printed(self._slurm.slurm_print_node_info_msg, found)
        self._slurm.slurm_free_node_info_msg(found)
        return told

    def _printed(self, print_to: "ctypes._NamedFuncPointer", what: ctypes.c_void_p) -> str:
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        stream = ctypes.c_void_p(self._c.open_memstream(ctypes.byref(text), ctypes.byref(size)))
        print_to(stream, what, 1)
        self._c.fclose(stream)
        told = ctypes.string_at(text.value or 0, size.value)
        self._c.free(text)
        return told.decode("utf-8", "replace")


def _name_and_nodes(line: str) -> str:
    words = line.split(" ")
    return " ".join(word for word in words if word.startswith(("PartitionName=", "Nodes=")))


def main() -> None:
    """Answer until nobody asks any more. What the library writes by itself is for nobody."""
    answers, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    asker = Asker(sys.argv[1])
    for line in sys.stdin:
        try:
            about = line.split()
            if about[:1] == [JOBS]:
                told, serial = asker.jobs(about[1:]), 0
            else:
                told, serial = asker.nodes(about).encode(), asker.serial()
            answer = b"ok %d %d\n" % (serial, len(told)) + told
        except (Failure, ValueError):
            answer = b"no\n"
        while answer:
            answer = answer[os.write(answers, answer) :]


if __name__ == "__main__":
    main()
