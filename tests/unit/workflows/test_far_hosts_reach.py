"""Whoever installs an agent learns within seconds that the head cannot be reached from that host."""

import socket
import subprocess

from steward.workflows.far_hosts import HostRole, install_script


def end_of(script: str) -> str:
    """The part that comes after the packages, and before systemd is asked."""
    begin = script.index("reached=")
    return script[begin : script.index('if [ -n "$changed', begin)]


def run(*heads: str) -> subprocess.CompletedProcess[str]:
    argv = ["sh", "-ec", end_of(install_script(HostRole.NODE, heads))]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)


def test_a_closed_port_is_told_with_what_to_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert run(f"127.0.0.1:{port}").returncode == 0
    done = run(f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"installed, but TCP 127.0.0.1:{port} (agent.head) is not reached from there" in done.stderr
    assert "open it on the controller" in done.stderr


def test_one_of_two_heads_is_enough_and_the_other_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as gone:
        here, closed = (f"127.0.0.1:{one.getsockname()[1]}" for one in (listener, gone))
        gone.close()
        for heads in ((here, closed), (closed, here)):
            done = run(*heads)
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.startswith(f"TCP {closed} (agent.head) is not reached from there within 5 s")
        assert run(here).stdout == ""
    assert f"installed, but TCP {here}, TCP {closed} (agent.head) is not reached" in run(here, closed).stderr


def test_a_login_host_needs_no_way_to_that_port() -> None:
    assert "/dev/tcp" not in install_script(HostRole.LOGIN, ["head1:6861"])
