"""`python -m steward.testbed` is `steward testbed`."""

from steward.testbed.cli import testbed

if __name__ == "__main__":
    testbed(prog_name="steward testbed")
