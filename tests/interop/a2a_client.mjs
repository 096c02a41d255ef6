// A client of the JavaScript SDK of A2A: sends, gets, lists, streams, cancels and has a hook told; prints JSON.
import { writeFileSync } from "node:fs";
import { Role, TaskState } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client";

const [address, token, binding, following, hook] = process.argv.slice(2);
const fetchImpl = (url, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${token}`);
  return fetch(url, { ...init, headers });
};
const transport = binding === "JSONRPC" ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl });
const factory = new ClientFactory({ transports: [transport], cardResolver: new DefaultAgentCardResolver({ fetchImpl }) });
const client = await factory.createFromUrl(address);
const request = (text, messageId) => ({
  tenant: "",
  message: {
    messageId, contextId: "", taskId: "", role: Role.ROLE_USER, metadata: undefined, extensions: [], referenceTaskIds: [],
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
  },
  configuration: {
    acceptedOutputModes: [], taskPushNotificationConfig: undefined, historyLength: undefined, returnImmediately: true,
  },
  metadata: undefined,
});
const sent = await client.sendMessage(request("From JavaScript", "js-1"));
const found = await client.getTask({ tenant: "", id: sent.id, historyLength: undefined });
const config = (id) => ({ tenant: "", id, taskId: sent.id, url: hook, token: `token-${id}`, authentication: undefined });
const named = (id) => ({ tenant: "", taskId: sent.id, id });
await client.createTaskPushNotificationConfig(config("one"));
await client.createTaskPushNotificationConfig(config("two"));
const kept = await client.getTaskPushNotificationConfig(named("two"));
await client.deleteTaskPushNotificationConfig(named("one"));
const hooks = await client.listTaskPushNotificationConfig({ tenant: "", taskId: sent.id, pageSize: 0, pageToken: "" });
const cancelled = await client.cancelTask({ tenant: "", id: sent.id, metadata: undefined });
const listed = await client.listTasks({
  tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageSize: undefined, pageToken: "",
  historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: undefined,
});
const streamed = [];
for await (const answer of client.sendMessageStream(request("Follow me", "js-2"))) {
  streamed.push(answer);
  writeFileSync(following, "");
}
console.log(JSON.stringify({ sent, found, cancelled, listed, streamed, kept, hooks }));
