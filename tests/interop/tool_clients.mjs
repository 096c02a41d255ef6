// Clients of others: `node tool_clients.mjs CLIENT stdio COMMAND …` or `… CLIENT http URL TOKEN`. Each lists our tools, and with
// its own object for a tool creates a task, claims and completes it, in one session; prints the answers as JSON.
const [name, kind, target, ...rest] = process.argv.slice(2);
const http = kind === "http";
const headers = { Authorization: `Bearer ${rest[0]}` };
const stdio = { command: target, args: rest, env: process.env };

const text = (answer) => JSON.parse((answer.content ?? answer)[0].text);

async function sdk(client, transport) {
  await client.connect(transport);
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  return { tools, call: async (tool, given) => text(await client.callTool({ name: tool, arguments: given })), close: () => client.close() };
}

const CLIENTS = {
  async sdk1() {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const over = http ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } }) : new StdioClientTransport(stdio);
    return sdk(new Client({ name: "test", version: "1" }), over);
  },
  async sdk2() {
    const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    const over = http ? new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } }) : new StdioClientTransport(stdio);
    return sdk(new Client({ name: "test", version: "1" }), over);
  },
  async vercel() {
    const { createMCPClient } = await import("@ai-sdk/mcp");
    const { Experimental_StdioMCPTransport } = await import("@ai-sdk/mcp/mcp-stdio");
    const client = await createMCPClient({ transport: http ? { type: "http", url: target, headers } : new Experimental_StdioMCPTransport(stdio) });
    const tools = await client.tools();
    const call = async (tool, given) => text(await tools[tool].execute(given, { toolCallId: "1", messages: [] }));
    return { tools: Object.keys(tools), call, close: () => client.close() };
  },
  async mastra() {
    const { MCPClient } = await import("@mastra/mcp");
    const client = new MCPClient({ servers: { aof: http ? { url: new URL(target), requestInit: { headers } } : stdio } });
    const tools = await client.listTools();
    const call = async (tool, given) => {
      const answer = await tools[`aof_${tool}`].execute(given, {});
      return answer.content ? text(answer) : answer;
    };
    return { tools: Object.keys(tools).map((tool) => tool.replace(/^aof_/, "")), call, close: () => client.disconnect() };
  },
};

const client = await CLIENTS[name]();
const made = await client.call("aof_dispatch", { title: `By ${name}`, brief: "All of it.", review: false });
const claimed = await client.call("aof_task_claim", { taskId: made.taskId });
const completed = await client.call("aof_task_complete", { taskId: made.taskId, summary: "All of it." });
await client.close();
console.log(JSON.stringify({ tools: client.tools, made, claimed, completed }));
process.exit(0);
