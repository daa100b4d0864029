"""A headless agent on the framework, for canaries and tests: a shell tool, a file tool and a child agent.

usage: agent.py run|abandon|direct [folder of the middleware]     the prompt comes on stdin

`abandon` leaves the run's stream as soon as the first tool has answered; `direct` runs the command of the prompt with the
tool's own `invoke`, past every agent. With a folder the middleware in it guards the agent and its child, or nothing starts."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from agent_framework import Agent, tool
from agent_framework_openai import OpenAIChatCompletionClient

APPROVAL = os.environ.get("AGENT_APPROVAL_MODE", "never_require")


@tool(approval_mode=APPROVAL)
def run_shell(command: str) -> str:
    """Run a shell command in the workspace."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


@tool
def write_file(path: str, content: str) -> str:
    """Write a file in the workspace."""
    Path(path).write_text(content)
    return f"wrote {path}"


TOOLS = {"run_shell": "shell.run", "write_file": "file.write", "delegate": "agent.spawn"}


def make_middleware(folder):
    if folder is None:
        return []
    path = Path(folder)
    sys.path.insert(0, str(path.parent))
    package = __import__(path.name)
    return package.create_policy_middleware(tools=TOOLS)


def make_agent(middleware):
    client = OpenAIChatCompletionClient(model="model")
    tools = [run_shell, write_file]
    child = Agent(client=client, name="child", instructions="Do the task.", tools=tools, middleware=middleware)
    delegate = child.as_tool(name="delegate", description="Hand a task to a child agent.")
    return Agent(client=client, name="main", instructions="Do the task.", tools=[*tools, delegate], middleware=middleware)


async def run(agent, prompt):
    response = await agent.run(prompt, session=agent.create_session())
    print(response.text if response else "")


async def abandon(agent, prompt):
    stream = agent.run(prompt, stream=True, session=agent.create_session())
    async for update in stream:
        if any(content.type == "function_result" for content in update.contents):
            break
    print("left the stream")


async def main():
    mode, *folder = sys.argv[1:]
    prompt = sys.stdin.read()
    agent = make_agent(make_middleware(folder[0] if folder else None))
    if mode == "direct":
        await run_shell.invoke(arguments={"command": prompt})
    else:
        await {"run": run, "abandon": abandon}[mode](agent, prompt)


asyncio.run(main())
