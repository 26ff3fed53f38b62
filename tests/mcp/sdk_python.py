"""The official client for Python, called by run_sdk.py: the same conversation as sdk_v2.mjs."""
import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

kind, mode, *words = sys.argv[1:]
asked = []


async def answer(_, params):
    asked.append(params.message)
    return ElicitResult(action="accept", content={"decision": "approve"})


async def converse():
    server = StdioServerParameters(command=words[0], args=words[1:]) if kind == "stdio" else words[0]
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        greeting = await client.call_tool("greet", {"name": "Ann"})
        opened = await client.call_tool("open", {})
        listed = await client.call_tool("process_list", {"definition": "open"})
        prompt = await client.get_prompt("start_process", {"definition": "open"})
        resource = await client.read_resource("pawl://definition/open")
        print(json.dumps({"asked": len(asked), "has": "open" in tools, "text": greeting.content[0].text,
                          "opened": opened.structured_content, "count": len(listed.structured_content["instances"]),
                          "prompt": "process_start" in prompt.messages[0].content.text,
                          "resource": "approval" in resource.contents[0].text, "version": client.protocol_version}))


asyncio.run(converse())
