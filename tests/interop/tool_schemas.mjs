// Compiles the schema of every tool, and that of its answer, as draft 7 and as 2020-12, strictly. Calls every tool that
// only reads through the TypeScript SDK, and holds each answer against its schema. Prints what went wrong, by tool, as
// JSON. Tools do not list the schemas of their answers; they come in a file.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";

const [file, taskId, command, ...args] = process.argv.slice(2);
const answers = JSON.parse(readFileSync(file, "utf8"));
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools } = await client.listTools();
const wrong = {};
const called = [];
for (const tool of tools) {
  const note = (what) => (wrong[tool.name] = [...(wrong[tool.name] ?? []), what]);
  for (const [draft, Judge] of [["draft-07", Ajv], ["2020-12", Ajv2020]]) {
    for (const schema of [tool.inputSchema, answers[tool.name] ?? { type: "object" }]) {
      try {
        new Judge({ strict: true, allErrors: true }).compile(schema);
      } catch (error) {
        note(`${JSON.stringify(schema).slice(0, 99)} as ${draft}: ${error.message}`);
      }
    }
  }
  const required = tool.inputSchema.required ?? [];
  if (!(tool.name in answers) || !tool.annotations?.readOnlyHint || required.some((name) => name !== "taskId")) continue;
  try {
    const answer = await client.callTool({ name: tool.name, arguments: required.length ? { taskId } : {} });
    if (answer.isError) continue;
    called.push(tool.name);
    const judge = new Ajv2020({ strict: true, allErrors: true }).compile(answers[tool.name]);
    if (!judge(answer.structuredContent)) note(JSON.stringify(judge.errors));
  } catch (error) {
    note(`called: ${error.message}`);
  }
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), called, wrong }));
