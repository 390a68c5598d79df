"""The rules of resuming as a table for docs/resume.md: `python -m steward.policy.job.decide_table`; a test compares."""

from steward.policy.job.decide import RULES


def table() -> str:
    """The table of rulings: a row for each rule, in the order in which they are tried."""
    rows = [
        f"| {number} | `{rule.name}` | {rule.decision.value} | {rule.text} |" for number, rule in enumerate(RULES, 1)
    ]
    return "\n".join(["| | rule | decision | what it says |", "|---|---|---|---|", *rows, ""])


if __name__ == "__main__":
    print(table(), end="")
