// A client whose types openapi-typescript made of our document: creates, shows and claims; prints what it got as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [address, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });
const body: components["schemas"]["CreateParams"] = {
  title: "From TypeScript",
  brief: "Yes.",
  metadata: { ticket: "X-1" },
};
const made = (await client.POST("/api/v1/create", { body })).data;
if (made === undefined) throw new Error("nothing was created");
const taskId: string = made.taskId;
const shown = (await client.GET("/api/v1/show", { params: { query: { taskId } } })).data;
const claimed = (await client.POST("/api/v1/claim", { body: { taskId } })).data;
const runId: string | undefined = claimed?.runId;
const log = (await client.GET("/api/v1/log", { params: { query: { taskId } } })).data;
const commits: number[][] | undefined = log?.events.map((event) => event.commit);
const { error } = await client.POST("/api/v1/create", { body: { title: " " } });
console.log(JSON.stringify({ made, shown, claimed, runId, commits, refused: error }));
