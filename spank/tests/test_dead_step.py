"""A step that a dead node left in Slurm's books (before 23.11) is ended; a newer Slurm is left to itself."""

from bed import ShimTest
from fake_agent import fields

ON = "--auto-resume=1"


class DeadSteps(ShimTest):
    """What slurmctld is told by a supervisor whose step runs again."""

    def told(self, left: str) -> list[str]:
        """What comes of a step that runs twice in a job that has these nodes `left`."""
        self.agent("retry=n3")
        status, output, _ = self.run_slurm("srun", ON, "print", "fail=1:7", FAKE_LEFT=left)
        states = [fields(line) for line in output.splitlines() if line.startswith("attempt=")]
        assert (status, len(states)) == (0, 2), output
        self.must_share = states[1]["overlap"] == "1"
        return [line for line in output.splitlines() if line.startswith("told ")]

    def test_it_is_told_of_the_node_once_more_before_and_after_the_next_attempt(self) -> None:
        told = self.told("n1,n2")
        once = "told 5016: step 12.40, nodes 1 to 1, status 9"
        assert told == ([once, once] if self.must_share else [])

    def test_nothing_is_told_while_the_job_has_all_nodes_of_its_steps(self) -> None:
        assert self.told("n1,n2,n3") == []

    def test_a_controller_that_hangs_and_a_crash_of_ours_cost_the_step_nothing(self) -> None:
        for left in ("hang", "crash"):
            with self.subTest(left):
                self.socket = str(self.folder / left)
                assert self.told(left) == []

    def test_without_a_retry_nobody_is_asked(self) -> None:
        self.agent("stop")
        assert "told " not in self.run_slurm("srun", ON, "exit=7", FAKE_LEFT="n1,n2")[1]
