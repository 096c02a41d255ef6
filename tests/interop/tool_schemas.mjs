// Compiles every tool's schemas as draft 7 and as 2020-12, strictly, and calls every tool that only reads through the
// TypeScript SDK, which holds each answer against its schema. Prints what went wrong, by tool, as JSON.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";

const [taskId, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools } = await client.listTools();
const wrong = {};
const called = [];
for (const tool of tools) {
  const note = (what) => (wrong[tool.name] = [...(wrong[tool.name] ?? []), what]);
  for (const [draft, Judge] of [["draft-07", Ajv], ["2020-12", Ajv2020]]) {
    for (const kind of ["inputSchema", "outputSchema"]) {
      try {
        new Judge({ strict: true, allErrors: true }).compile(tool[kind]);
      } catch (error) {
        note(`${kind} as ${draft}: ${error.message}`);
      }
    }
  }
  const required = tool.inputSchema.required ?? [];
  if (!tool.annotations.readOnlyHint || required.some((name) => name !== "taskId")) continue;
  try {
    const answer = await client.callTool({ name: tool.name, arguments: required.length ? { taskId } : {} });
    if (!answer.isError) called.push(tool.name);
  } catch (error) {
    note(`called: ${error.message}`);
  }
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), called, wrong }));
