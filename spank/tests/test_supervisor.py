"""The supervised srun: the same as srun to everyone who looks, and once more when the agent says so."""

import fcntl
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
import unittest
from pathlib import Path
from typing import IO, BinaryIO, cast

from bed import DEADLINE_S, FAKE_SLURM, ShimTest, await_condition
from fake_agent import fields

ON = "--auto-resume=1"


def parent_of(pid: int) -> int:
    """The parent's process id."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def ready(stream: IO[str]) -> int:
    """The process id of a task that watches its signals."""
    for line in stream:
        if line.startswith("ready "):
            return int(line.split()[1])
    raise AssertionError("the task never was ready")


class WhoIsSupervised(ShimTest):
    """And who is left alone."""

    def state(self, *argv: str, **env: str) -> str:
        """What the step's task sees."""
        status, output, _ = self.run_slurm("srun", *argv, "print", **env)
        assert status == 0, output
        return output

    def test_a_step_with_the_option_in_an_allocation(self) -> None:
        assert "attempt=1 mode=1 exclude=- mark=- " in self.state(ON)

    def test_a_step_of_an_opted_in_job(self) -> None:
        assert "attempt=1 mode=any:4 " in self.state(STEWARD_AUTO_RESUME="any:4")

    def test_not_a_step_without_the_option(self) -> None:
        assert "attempt=0 mode=- " in self.state()

    def test_not_a_step_that_opts_out(self) -> None:
        assert "attempt=0 mode=0 " in self.state("--auto-resume=0", STEWARD_AUTO_RESUME="1")

    def test_a_step_that_opts_out_ends_unasked(self) -> None:
        agent = self.agent("retry")
        assert self.run_slurm("srun", "--auto-resume=0", "exit=4", STEWARD_AUTO_RESUME="1")[0] == 4
        assert agent.lines == []

    def test_an_option_of_the_users_own_program_is_not_ours(self) -> None:
        agent = self.agent("retry")
        assert self.run_slurm("srun", "exit=4", ON)[0] == 4
        assert agent.lines == []

    def test_a_value_that_is_refused_is_refused_once(self) -> None:
        agent = self.agent("retry")
        status, output, _ = self.run_slurm("srun", "--auto-resume=2", "print")
        assert (status, output.count("\n"), agent.lines) == (255, 1, [])

    def test_an_outer_steps_attempt_is_not_shown(self) -> None:
        assert "attempt=0" in self.state(STEWARD_ATTEMPT="3")

    def test_not_an_srun_that_makes_its_own_allocation(self) -> None:
        assert "attempt=0 mode=1 " in self.state(ON, SLURM_JOB_ID="")

    def test_a_stray_variable_outside_a_job_opts_nothing_in(self) -> None:
        assert "attempt=0 mode=- " in self.state(SLURM_JOB_ID="", STEWARD_AUTO_RESUME="1")

    def test_not_a_step_with_a_terminal_of_its_own(self) -> None:
        assert "attempt=0 mode=1 " in self.state(ON, "--pty")

    def test_an_srun_inside_a_task_is_not_taken_for_an_attempt(self) -> None:
        assert "attempt=1 mode=1 exclude=- mark=- " in self.state(ON, STEWARD_SUPERVISOR="1 2")


class Endings(ShimTest):
    """How it ends, and what is asked."""

    def test_exit_codes_are_the_steps(self) -> None:
        self.agent("stop")
        for code in (0, 1, 3, 255):
            with self.subTest(code):
                assert self.run_slurm("srun", ON, f"exit={code}")[0] == code

    def test_a_step_killed_by_a_signal_looks_so(self) -> None:
        self.agent("stop")
        assert self.run_slurm("srun", ON, "kill=KILL")[0] == -signal.SIGKILL
        assert self.run_slurm("srun", ON, "kill=USR1")[0] == -signal.SIGUSR1

    def test_success_is_not_asked_about(self) -> None:
        agent = self.agent("stop")
        self.run_slurm("srun", ON, "exit=0")
        assert agent.lines == []

    def test_what_it_may_have_written_is_told_at_its_end(self) -> None:
        out, errors = self.folder / "out", self.folder / "errors"
        for answers, word in (("stop", "exit=4"), ("stop", "exit=0")):
            with self.subTest(word):
                self.socket = str(self.folder / word)
                agent = self.agent(answers)
                out.write_text("of before\n")
                with out.open("a") as one, errors.open("w") as two:
                    argv = ["srun", ON, "print", word]
                    subprocess.run(argv, executable=FAKE_SLURM, env=self.env(), stdout=one, stderr=two, timeout=20)
                agent.close()
                (line,) = [line for line in agent.lines if line.split()[1] in ("ask", "ended")]
                files = [(file.stat().st_ino, begin, file.stat().st_size) for file, begin in ((out, 10), (errors, 0))]
                assert fields(line)["log"] == ",".join(f"{inode}:{begin}:{end}" for inode, begin, end in files)

    def test_a_step_that_lost_a_node_has_failed_though_srun_calls_it_a_success(self) -> None:
        lost = {"SLURM_JOB_NUM_NODES": "3", "FAKE_STEP_NODES": "n1,n2", "FAKE_LEFT": "n1,n3"}
        agent = self.agent("retry;stop")
        status, output, _ = self.run_slurm("srun", ON, "exit=0", **lost)
        assert [(ask["attempt"], ask["status"]) for ask in agent.asked()] == [("1", "256"), ("2", "256")]
        assert (status, "lost node n2" in output) == (1, True), output

    def test_without_a_decision_such_a_step_ends_as_srun_ended_it(self) -> None:
        lost = {"SLURM_JOB_NUM_NODES": "3", "FAKE_STEP_NODES": "n1,n2", "FAKE_LEFT": "n1,n3"}
        assert self.run_slurm("srun", ON, "exit=0", **lost)[0] == 0

    def test_a_step_whose_nodes_are_all_there_or_are_not_known_has_not_failed(self) -> None:
        agent = self.agent("stop")
        all_there = {"FAKE_STEP_NODES": "n1,n2", "FAKE_LEFT": "n1,n2,n3"}
        silent = {"FAKE_STEP_NODES": "n1,n2"}
        for known in (all_there, silent, {"FAKE_LEFT": "n1"}):
            with self.subTest(**known):
                assert self.run_slurm("srun", ON, "exit=0", SLURM_JOB_NUM_NODES="3", **known)[0] == 0
        lost = {"FAKE_STEP_NODES": "n1,n2", "FAKE_LEFT": "n1,n3", "SLURM_JOB_NUM_NODES": "3"}
        assert self.run_slurm("srun", "--auto-resume=0", "exit=0", **lost)[0] == 0
        assert agent.lines == []

    def test_failure_is_asked_about_with_the_steps_id(self) -> None:
        agent = self.agent("retry;stop")
        self.run_slurm("srun", "--auto-resume=any:2", "exit=3", SLURM_RESTART_COUNT="5")
        first = f"kind=step job=12 step=41 uid={os.getuid()} mode=any:2 attempt=1 restart=5 status=768 own=yes"
        second = f"kind=step job=12 step=42 uid={os.getuid()} mode=any:2 attempt=2 restart=5 status=768 own=yes"
        assert agent.lines == [f"steward/1 ask {first}", f"steward/1 ask {second}"]

    def test_the_jobs_option_and_the_programs_are_not_the_steps_own(self) -> None:
        agent = self.agent("stop")
        for argv in (["exit=3"], ["--auto-resume=any:2", "exit=3"]):
            self.run_slurm("srun", "print", *argv, STEWARD_AUTO_RESUME="any:2")
        assert [ask.get("own") for ask in agent.asked()] == [None, None]

    def test_a_step_that_could_not_be_made_has_no_id(self) -> None:
        agent = self.agent("stop")
        self.run_slurm("srun", ON, "exit=1", FAKE_NO_STEP="1")
        assert agent.asked()[0]["step"] == "unknown"

    def test_retry_runs_the_step_again_without_all_nodes_that_were_ever_bad(self) -> None:
        self.agent("retry=n3+n4;retry;retry=n3+n5")
        status, output, _ = self.run_slurm("srun", ON, "print", "fail=3:7")
        assert status == 0
        states = [fields(line) for line in output.splitlines() if line.startswith("attempt=")]
        assert [state["exclude"] for state in states] == ["-", "n3,n4", "n3,n4", "n3,n5,n4"]
        assert len({state["overlap"] for state in states[1:]}) == 1, "shared with a dead step once, shared ever after"
        assert "(attempt 4) without n3,n5,n4" in output

    def test_a_job_or_its_site_can_have_no_line_of_ours_on_stderr(self) -> None:
        self.agent("retry=n3;retry=n3")
        for argv, env in (
            (["--auto-resume=1,quiet=1"], {}),
            ([ON], {"FAKE_PLUGSTACK": f"socket={self.socket} hold=10 quiet=1"}),
        ):
            status, output, _ = self.run_slurm("srun", *argv, "print", "fail=1:7", **env)
            assert status == 0
            assert [line.split()[0] for line in output.splitlines()] == ["attempt=1", "attempt=2"], output

    def test_a_later_attempt_appends_to_the_steps_output_files(self) -> None:
        self.agent("retry")
        for said, then in ({}, ["-", "a"]), ({"SLURM_OPEN_MODE": "t"}, ["t", "t"]):
            with self.subTest(**said):
                _, output, _ = self.run_slurm("srun", ON, "print", "fail=1:7", **said)
                assert [fields(line)["open"] for line in output.splitlines() if line.startswith("attempt=")] == then

    def test_without_a_retry_the_status_is_true_and_the_step_runs_once(self) -> None:
        for answer in ("stop", "requeue", "garbage", "ok", "sleep=0"):
            with self.subTest(answer):
                self.socket = str(self.folder / answer)
                self.agent(answer)
                status, output, seconds = self.run_slurm("srun", ON, "print", "exit=9")
                assert (status, output.count("attempt=")) == (9, 1)
                assert seconds < 1.5

    def test_without_an_agent_it_ends_at_once(self) -> None:
        status, output, seconds = self.run_slurm("srun", ON, "print", "exit=9")
        assert (status, len(output.splitlines())) == (9, 2)
        assert seconds < 1


class NoSecondSrun(ShimTest):
    """This srun cannot be executed again: its file is no program any more."""

    def setUp(self) -> None:
        super().setUp()
        self.program = shutil.copy(FAKE_SLURM, self.folder / "slurm")

    def test_at_first_the_step_runs_as_without_us(self) -> None:
        status, output, _ = self.run_slurm("srun", ON, "print", "exit=9", FAKE_FORBID="1")
        assert (status, output.count("attempt=0 mode=1 ")) == (9, 1), output
        assert "runs without supervision" in output

    def test_of_a_job_that_opts_out_none_is_tried(self) -> None:
        off = {"SLURM_SPANK__SLURM_SPANK_OPTION_steward_auto_resume": "0", "STEWARD_AUTO_RESUME": "0"}
        _, output, _ = self.run_slurm("srun", "print", FAKE_FORBID="1", **off)
        assert "attempt=0 mode=0 " in output
        assert "supervision" not in output

    def test_later_the_step_ends_as_it_ended_before(self) -> None:
        self.agent("retry")
        status, output, _ = self.run_slurm("srun", ON, "print", "forbid", "exit=9")
        assert (status, output.count("attempt=")) == (9, 1), output
        assert "no srun could be started for attempt 2" in output


class Restart(ShimTest):
    """The agent is restarted, as by an upgrade or its watchdog."""

    def test_a_step_that_waits_asks_the_next_agent_the_same(self) -> None:
        first = self.agent("wait,wait,wait")
        process = self.start(["srun", ON, "print", "fail=1:7"])
        await_condition(first.asked, "the agent is asked")
        self.lose(first)
        time.sleep(1)
        second = self.agent("wait,retry=n3")
        output, _ = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, "attempt=2 mode=1 exclude=n3 " in output) == (0, True), output
        assert second.lines == first.lines

    def test_an_agent_that_has_answered_before_is_waited_for(self) -> None:
        first = self.agent("retry")
        process = self.start(["srun", ON, "print", "sleep=1", "fail=2:7"])
        await_condition(first.asked, "the agent is asked")
        self.lose(first)
        time.sleep(1.8)
        second = self.agent("retry")
        output, _ = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, output.count("attempt=")) == (0, 3), output
        assert [ask["attempt"] for ask in second.asked()] == ["2"]

    def test_an_interrupt_while_the_agent_is_away_ends_it_with_the_true_status(self) -> None:
        agent = self.agent("wait,wait,wait")
        process = self.start(["srun", ON, "exit=6"])
        await_condition(agent.asked, "the agent is asked")
        self.lose(agent)
        time.sleep(0.7)
        assert process.poll() is None
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_S) == 6
        assert time.monotonic() - begin < 0.8

    def test_signals_that_pass_do_not_use_up_its_patience(self) -> None:
        first = self.agent("wait,wait,wait")
        process = self.start(["srun", ON, "exit=6"])
        await_condition(first.asked, "the agent is asked")
        self.lose(first)
        for _ in range(100):
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.005)
        second = self.agent("stop")
        assert process.wait(timeout=DEADLINE_S) == 6
        assert second.lines == first.lines


class Input(ShimTest):
    """A step run again must read what it read before."""

    def test_a_file_is_read_again_from_where_it_stood(self) -> None:
        self.agent("retry")
        path = self.folder / "input"
        path.write_text("skipped kept")
        with path.open("rb") as file:
            file.seek(len("skipped "))
            process = self.start(["srun", ON, "cat", "fail=1:5"], stdin=file.fileno())
            output, _ = process.communicate(timeout=DEADLINE_S)
        assert output.count("read kept") == 2, output

    def test_what_went_through_a_pipe_is_gone(self) -> None:
        agent = self.agent("retry")
        process = self.start(["srun", ON, "cat", "exit=5"], stdin=subprocess.PIPE)
        output, _ = process.communicate("once", timeout=DEADLINE_S)
        assert (process.returncode, output.count("read once")) == (5, 1)
        assert "standard input is gone" in output
        assert agent.asked()[0]["replay"] == "no"

    def test_a_pipe_or_socket_through_which_nothing_came_can_be_given_again(self) -> None:
        for name in ("pipe", "socket"):
            for closed in ("before", "meanwhile", "not"):
                with self.subTest(name, closed=closed):
                    self.socket = str(self.folder / f"{name}-{closed}")
                    agent = self.agent("retry")
                    theirs, ours = self.stream(name)
                    if closed == "before":
                        os.close(ours)
                    process = self.start(["srun", ON, "print", "take=300", "fail=1:5"], stdin=theirs)
                    assert process.stdout is not None
                    process.stdout.readline()
                    if closed == "meanwhile":
                        os.close(ours)
                    assert process.wait(DEADLINE_S) == 0
                    assert "replay" not in agent.asked()[0]
                    if closed == "not":
                        os.close(ours)

    def test_one_through_which_something_came_at_any_time_cannot(self) -> None:
        for name in ("pipe", "socket"):
            for when in ("before", "meanwhile"):
                for closes in (True, False):
                    with self.subTest(name, when=when, closes=closes):
                        self.socket = str(self.folder / f"{name}-{when}-{closes}")
                        agent = self.agent("retry")
                        theirs, ours = self.stream(name)
                        if when == "before":
                            os.write(ours, b"word")
                        process = self.start(["srun", ON, "print", "take=300", "exit=5"], stdin=theirs)
                        assert process.stdout is not None
                        process.stdout.readline()
                        if when == "meanwhile":
                            os.write(ours, b"word")
                        if closes:
                            os.close(ours)
                        assert process.wait(DEADLINE_S) == 5
                        assert agent.asked()[0]["replay"] == "no"
                        if not closes:
                            os.close(ours)

    def stream(self, name: str) -> tuple[int, int]:
        """The end that the step reads, which is closed after the test, and the other."""
        if name == "pipe":
            theirs, ours = os.pipe()
        else:
            theirs, ours = (end.detach() for end in socket.socketpair())
        self.addCleanup(os.close, theirs)
        return theirs, ours


class Signals(ShimTest):
    """Each reaches the step once; the user's will ends everything."""

    def check_each_signal_is_passed_on_once(self, *before: str, **env: str) -> None:
        agent = self.agent("retry")
        process = self.start(["srun", ON, *before, "signals", "exit=1"], env=env)
        assert process.stdout
        ready(process.stdout)
        sent = [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH]
        got = []
        for signo in [*sent, signal.SIGCONT, signal.SIGTERM]:
            process.send_signal(signo)
            got.append(process.stdout.readline())
        rest, _ = process.communicate(timeout=DEADLINE_S)
        assert got == [f"got {int(signo)}\n" for signo in [*sent, signal.SIGCONT, signal.SIGTERM]]
        assert (rest, process.returncode, agent.lines) == ("", 1, []), "and the agent was not asked"

    def test_without_a_terminal_each_signal_is_passed_on_once(self) -> None:
        self.check_each_signal_is_passed_on_once()

    def test_a_thread_of_srun_that_catches_signals_late_does_not_lose_them(self) -> None:
        self.check_each_signal_is_passed_on_once("sleep=1", FAKE_THREAD="1")

    def test_the_child_has_a_group_of_its_own_without_a_terminal(self) -> None:
        assert "group=own" in self.run_slurm("srun", ON, "print")[1]

    def test_what_slurmstepd_sends_to_the_scripts_group_reaches_the_step_once(self) -> None:
        stepd = self.folder / "slurmstepd"
        stepd.write_text("#!/bin/bash\nfor signo; do kill -$signo -- -$GROUP; sleep 0.2; done\n")
        stepd.chmod(0o755)
        process = self.start(["srun", ON, "signals"])
        assert process.stdout
        ready(process.stdout)
        subprocess.run([stepd, "USR2", "INT", "TERM"], env={"GROUP": str(process.pid)}, check=True)
        output, _ = process.communicate(timeout=DEADLINE_S)
        sent = (signal.SIGUSR2, signal.SIGINT, signal.SIGTERM)
        assert sorted(output.splitlines()) == sorted(f"got {int(signo)}" for signo in sent)

    def test_what_slurmstepd_sends_to_every_process_to_end_a_job_reaches_the_step_once(self) -> None:
        stepd = self.folder / "slurmstepd"
        ends = ("kill -CONT $SRUN $CHILD", "sleep 0.1", "kill -TERM $SRUN", "sleep 0.3", "kill -TERM $CHILD")
        stepd.write_text("#!/bin/bash -e\n" + "\n".join(ends) + "\n")
        stepd.chmod(0o755)
        process = self.start(["srun", ON, "signals"])
        assert process.stdout
        child = ready(process.stdout)
        subprocess.run([stepd], env={"SRUN": str(process.pid), "CHILD": str(child)}, check=True)
        output, _ = process.communicate(timeout=DEADLINE_S)
        assert output.splitlines() == [f"got {int(signo)}" for signo in (signal.SIGCONT, signal.SIGTERM)]

    def under_stepd(self, *acts: str) -> list[str]:
        """What the step of `exec srun` got: slurmstepd is the parent of that srun ($1), whose child is $2."""
        stepd = self.folder / "slurmstepd"
        begin = f"exec 3< <(exec -a srun {FAKE_SLURM} {ON} signals); set -- $!"
        wait = 'until [ "$word" = ready ]; do read -u3 word child; done; set -- $1 $child'
        stepd.write_text("\n".join(["#!/bin/bash", begin, wait, *acts, "cat <&3"]) + "\n")
        stepd.chmod(0o755)
        done = subprocess.run([stepd], env=self.env(), capture_output=True, text=True, check=True, timeout=DEADLINE_S)
        return done.stdout.splitlines()

    def test_of_an_srun_that_is_the_script_the_step_has_the_end_of_the_job_once(self) -> None:
        got = self.under_stepd("kill -CONT $1 $2", "sleep 0.1", "kill -TERM $1", "sleep 0.3", "kill -TERM $2")
        assert got == [f"got {int(signo)}" for signo in (signal.SIGCONT, signal.SIGTERM)]

    def test_an_srun_that_is_the_script_passes_on_what_slurm_sends_the_script_alone(self) -> None:
        halted = "until [ \"$(cut -d' ' -f3 /proc/$2/stat)\" = T ]; do sleep 0.05; done"
        got = self.under_stepd("kill -USR1 $1", "kill -TSTP $1", halted, "kill -CONT $1", "sleep 1.1", "kill -TERM $1")
        assert sorted(got) == sorted(f"got {int(signo)}" for signo in (signal.SIGUSR1, signal.SIGCONT, signal.SIGTERM))

    def test_an_interrupt_while_the_agent_thinks_ends_it_with_the_true_status(self) -> None:
        agent = self.agent("wait,wait,wait,wait,retry")
        process = self.start(["srun", ON, "exit=6"])
        await_condition(agent.asked, "the agent is asked")
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_S) == 6
        assert time.monotonic() - begin < 0.8

    def test_a_supervisor_that_is_killed_leaves_no_child(self) -> None:
        process = self.start(["srun", ON, "signals"])
        assert process.stdout
        child = ready(process.stdout)
        process.kill()
        await_condition(lambda: not is_alive(child), "the child is gone")

    def test_a_signal_ignored_from_the_start_is_ignored_by_the_step(self) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        assert "hup=ignored" in self.run_slurm("srun", ON, "print")[1]


class Terminal(ShimTest):
    """With a terminal the kernel signals supervisor and child alike."""

    def open(self, program: str, *argv: str) -> BinaryIO:
        """Run a program in a new terminal and give the terminal's other side."""
        env = self.env(FAKE=FAKE_SLURM)
        pid, master = pty.fork()
        if pid == 0:
            os.execve(program, list(argv), env)
        self.pid = pid
        settings = termios.tcgetattr(master)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(master, termios.TCSANOW, settings)
        terminal = cast(BinaryIO, os.fdopen(master, "r+b", buffering=0))
        self.addCleanup(self._end, terminal)
        self.limit(lambda: os.kill(pid, signal.SIGKILL))
        return terminal

    def _end(self, terminal: BinaryIO) -> None:
        terminal.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def until(self, terminal: BinaryIO, text: str) -> str:
        """Read until text has come; what came."""
        seen = ""
        end = time.monotonic() + DEADLINE_S
        while text not in seen:
            assert time.monotonic() < end, seen
            seen += terminal.read(1).decode()
        return seen

    def test_keys_and_window_changes_reach_the_step_once(self) -> None:
        terminal = self.open(FAKE_SLURM, "srun", ON, "print", "signals")
        assert "group=shared" in self.until(terminal, "ready ")
        self.until(terminal, "\n")
        terminal.write(b"\x03")
        seen = self.until(terminal, f"got {int(signal.SIGINT)}\r\n")
        fcntl.ioctl(terminal.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
        seen += self.until(terminal, f"got {int(signal.SIGWINCH)}\r\n")
        os.kill(self.pid, signal.SIGUSR1)
        seen += self.until(terminal, f"got {int(signal.SIGUSR1)}\r\n")
        os.kill(self.pid, signal.SIGTERM)
        seen += self.until(terminal, f"got {int(signal.SIGTERM)}\r\n")
        assert seen.count("got") == 4, seen

    def test_suspend_and_foreground_work_as_in_any_shell(self) -> None:
        script = f"set -m; (exec -a srun $FAKE {ON} signals); echo halted; fg; echo over"
        terminal = self.open("/bin/bash", "bash", "-c", script)
        self.until(terminal, "ready ")
        child = int(self.until(terminal, "\n"))
        supervisor = parent_of(child)
        terminal.write(b"\x1a")
        self.until(terminal, "halted")
        self.until(terminal, f"got {int(signal.SIGCONT)}")
        os.kill(supervisor, signal.SIGTERM)
        self.until(terminal, f"got {int(signal.SIGTERM)}")
        self.until(terminal, "over")


if __name__ == "__main__":
    unittest.main()
