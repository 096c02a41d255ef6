// A client of the TypeScript SDK: lists our tools and calls one, over stdio or HTTP; prints what it got as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, target, ...rest] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: target, args: rest, env: process.env })
    : new StreamableHTTPClientTransport(new URL(target), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } },
      });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const made = await client.callTool({ name: "aof_dispatch", arguments: { title: "From TypeScript", brief: "Yes." } });
const refused = await client.callTool({ name: "aof_task_block", arguments: { taskId: "001", reason: " " } });
const templates = (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate);
await client.close();
console.log(JSON.stringify({ tools, made: made.structuredContent, refused, templates }));
