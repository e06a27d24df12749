"""Calls of real tools on real MCP servers, and whatever may go wrong with them."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from django.contrib.auth.models import User

from apps.core import tools
from apps.core.tools import ToolError
from apps.mcp import connection, discovery, sessions
from apps.mcp import tools as mcp_tools
from apps.mcp.models import ToolServer
from apps.runtime.async_db import in_db
from tests.conftest import NOBODY
from tests.llama_process import free_port
from tests.mcp.conftest import COMMAND, create_command, known
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


async def run(name: str, user: User, **arguments: object) -> str:
    (tool,) = [tool for tool in await in_db(tools.available, user.pk) if tool.name == name]
    return await tool.function()(user, arguments)


async def test_a_command_is_asked_and_called(alice: User, bob: User) -> None:
    server = await known(await in_db(create_command, tools=[]))
    names = [tool["name"] for tool in server.tools]
    assert names == sorted(names)
    assert "kettle__pour" in names
    assert server.checked_at is not None
    (pour,) = [t for t in await in_db(tools.available, alice.pk) if t.name == "kettle__pour"]
    assert pour.needs_approval
    assert pour.group == "Kettle"
    assert pour.parameters["required"] == ["cups"]

    # What the server remembers is each person's own.
    assert await run("kettle__pour", alice, cups=2) == "2 cups"
    assert await run("kettle__pour", alice, cups=3) == "5 cups"
    assert await run("kettle__pour", bob, cups=1) == "1 cups"
    assert await run("kettle__picture", alice) == (
        "A kettle:\n[image (image/png), which cannot be given to you]"
    )
    assert len(await run("kettle__story", alice, characters=300_000)) == 300_000
    with pytest.raises(ToolError, match="break_it"):
        await run("kettle__break_it", alice)
    with pytest.raises(ToolError, match=r"cups"):
        await run("kettle__pour", alice, cups="many")


async def test_streamable_http_with_its_key(alice: User, http_server: ToolServer) -> None:
    await known(http_server)
    assert await run("far__pour", alice, cups=2) == "2 cups"
    assert await run("far__story", alice, characters=5) == "xxxxx"
    http_server.encrypted_key = ""
    refused = await discovery.refresh_tools(http_server)
    assert refused.error == "The API key is missing or was rejected (401). Update it under Edit."
    assert len(refused.tools) > 3  # what it said before stays: the prompt stays the same


async def test_its_environment_reaches_it_and_ours_does_not(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.core import crypto

    monkeypatch.setenv("KETTLE", "ours")
    server = await in_db(create_command)
    await known(server)
    assert await run("kettle__secret", alice) == "nothing"
    server.encrypted_environment = crypto.encrypt("KETTLE=its own=1")
    await server.asave()
    assert await run("kettle__secret", alice) == "its own=1"


async def test_one_that_dies_in_a_call_is_there_for_the_next(alice: User) -> None:
    await known(await in_db(create_command))
    with pytest.raises(ToolError, match=r"Kettle is not available\. The connection was lost"):
        await run("kettle__die", alice)
    assert (await ToolServer.objects.aget()).error.startswith("The connection was lost")
    assert await run("kettle__pour", alice, cups=4) == "4 cups"
    server = await ToolServer.objects.aget()
    assert (server.error, server.error_since) == ("", None)


async def test_a_call_that_is_given_up_ends_its_process(alice: User, tmp_path: Path) -> None:
    pid_file, hangs_file = tmp_path / "pid", tmp_path / "hangs"
    command = f"env KETTLE_PID_FILE={pid_file} KETTLE_HANGS_FILE={hangs_file} {COMMAND}"
    await known(await in_db(create_command, "Kettle", command))
    await run("kettle__pour", alice, cups=1)
    process = psutil.Process(int(pid_file.read_text()))
    calling = asyncio.create_task(run("kettle__hang", alice))
    await until(hangs_file.exists)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    assert await run("kettle__pour", alice, cups=2) == "2 cups"


async def test_an_idle_connection_ends(
    alice: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    await known(await in_db(create_command, "Kettle", f"env KETTLE_PID_FILE={pid_file} {COMMAND}"))
    monkeypatch.setattr(sessions, "IDLE_SECONDS", 0.2)
    await run("kettle__pour", alice, cups=1)
    process = psutil.Process(int(pid_file.read_text()))
    await until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-command-here", "not found"),
        ("sh -c 'echo The lid is missing. >&2; exit 1'", "It said: The lid is missing."),
        ("sleep 60", "did not respond within 0.5 seconds"),
    ],
)
async def test_a_command_that_is_no_server_says_why(
    command: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command.startswith("sleep"):
        monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    server = await discovery.refresh_tools(await in_db(create_command, "Broken", command))
    assert said in f"{server.error} It said: {server.error_output}"
    assert "lid" not in server.error  # which everybody may read
    assert server.error_since is not None
    assert await in_db(mcp_tools.tools_for, NOBODY) == []


async def test_nobody_there(alice: User, http_server: ToolServer) -> None:
    await known(http_server)
    await ToolServer.objects.aupdate(url=f"http://127.0.0.1:{free_port()}/mcp")
    with pytest.raises(
        ToolError, match=r"Far kettle is not available\. The tool server is not resp"
    ):
        await run("far__pour", alice, cups=1)
    (tool, *_) = await in_db(mcp_tools.tools_for, NOBODY)
    assert tool.trouble == (
        "The tool server is not responding. Check that it is running and that the "
        "address is correct."
    )


async def test_private_addresses_only_where_the_settings_allow(
    http_server: ToolServer, settings: object
) -> None:
    settings.MCP_PRIVATE_URLS = False  # type: ignore[attr-defined]
    server = await discovery.refresh_tools(http_server)
    assert "127.0.0.1 is a private address" in server.error


async def test_commands_only_where_the_settings_allow(settings: object) -> None:
    settings.MCP_COMMANDS = False  # type: ignore[attr-defined]
    server = await discovery.refresh_tools(await in_db(create_command))
    assert "Commands are disabled" in server.error


HOLDER = """
import asyncio, django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
django.setup()
from apps.mcp.connection import connect
from apps.mcp.models import Target

async def main():
    async with connect(Target(1, "stdio", command=tuple(sys.argv[1:]))):
        print("open", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_nothing_is_left_of_a_process_that_was_killed(tmp_path: Path) -> None:
    """Also of a command that does not care about the end of its input."""
    deaf = tmp_path / "deaf.py"
    pids = tmp_path / "pids"
    server = shlex.split(COMMAND)
    deaf.write_text(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        f"server = subprocess.Popen({server!r})\n"
        f"with open({str(pids)!r}, 'w') as file:\n"
        "    file.write(f'{os.getpid()} {child.pid} {server.pid}')\n"
        "time.sleep(300)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, sys.executable, str(deaf)],
        stdout=subprocess.PIPE,
        env=os.environ,
        text=True,
    )
    assert holder.stdout is not None
    assert await asyncio.to_thread(holder.stdout.readline) == "open\n"
    started = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    await until(
        lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in started)
    )
