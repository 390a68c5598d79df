"""Scripts as people write them, each without and with the option: with no fault both end alike, and print the same."""

from tests.e2e.story import Story

SCRIPTS = {
    "hangs itself up": "kill -HUP $$\n",  # Slurm 22.05 gives it the status of a launch that failed
    "traps": """trap 'kill $P; wait; exit 3' USR1
sleep 60 & P=$!
( sleep 1; kill -USR1 $$ ) &
wait $P
exit 9
""",
    "becomes srun": "exec srun -n1 sh -c 'exit 6'\n",
    "ends before its step": "srun -n1 sleep 60 &\nexit 4\n",
    "several programs": """printf '%s\\n' '0 echo zero %t' '1 sh -c "exit 5"' >programs
srun -n2 --multi-prog programs
""",
    "is sent SIGTERM with its group": "trap '' TERM\nkill -TERM 0\nsrun -n1 echo after\n",
    "has no input and no error output": "exec 0<&- 2>&-\nsrun -n1 echo closed\nsrun -n1 sh -c 'exit 11'\n",
    "pipes": """set -o pipefail
seq 3 | srun -n1 cat
srun -n1 bash -s <<'X'
read line
echo not this
echo that
X
while read n; do srun -n1 --input=none echo $n; done <<<'4
5'
echo x | srun -n1 sh -c 'cat; exit 7'
""",
    "signals its steps": """srun -n1 sh -c 'kill -SEGV $$'; echo $?
srun -n1 sh -c 'kill -TERM $$'; echo $?
timeout -s INT 1 srun -n1 sleep 4; echo $?
timeout 1 srun -n1 sleep 60; echo $?
""",
    "has options of every kind": """srun -n1 sh -c 'srun --overlap -n1 sh -c "exit 8"; echo inner $?'
srun --no-such-option true; echo $?
srun -n1 /no/such/program; echo $?
srun -W1 -n2 sh -c '[ $SLURM_PROCID = 0 ] || sleep 60'; echo $?
srun -K1 -n2 sh -c '[ $SLURM_PROCID = 1 ] && exit 2; sleep 60'; echo $?
""",
    "wraps its steps": """nohup srun -n1 sh -c 'exit 3'; echo $?
setsid -w srun -n1 sh -c 'exit 4'; echo $?
printf 'a\\nb\\n' | xargs -P2 -I@ srun -n1 --mem=10M --exact echo @ | sort
srun -n1 false || srun -n1 echo instead
(exec srun -n1 sh -c 'exit 12')
""",
}


def test_without_a_fault_odd_scripts_end_with_the_option_as_they_end_without(story: Story) -> None:
    def submitted(name: str, text: str, *option: str) -> tuple[int, str]:
        place = story.dir / f"{name}{''.join(option)}".replace(" ", "-")
        place.mkdir()
        out = f"{place}/out"
        script = story.script(f"{place.name}/script.sh", text)
        streams = (f"--output={out}", "--error=/dev/null", f"--chdir={place}")
        return story.submit(script, *option, *streams, "-N1", "-n2", "--mem=100M"), f"{place.name}/out"

    pairs = {name: (submitted(name, text), submitted(name, text, "--auto-resume=1")) for name, text in SCRIPTS.items()}
    plain, opted = ({name: ended(story, *pair[i]) for name, pair in pairs.items()} for i in (0, 1))
    assert opted == plain
    assert {name for name, (_, code, *_) in plain.items() if code == "0:0"} == {
        "is sent SIGTERM with its group",
        "signals its steps",
        "has options of every kind",
    }


def ended(story: Story, job: int, out: str) -> tuple[str, str, int, list[str]]:
    """How it ended, how often it began anew, and what it printed."""
    seen = story.wait_end(job, 90.0)
    return seen.state, seen.exit_code, seen.restarts, story.lines(out)
