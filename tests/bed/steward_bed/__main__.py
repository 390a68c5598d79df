"""`python -m steward_bed` is `steward-testbed`."""

from steward_bed.cli import testbed

if __name__ == "__main__":
    testbed(prog_name="steward-testbed")
