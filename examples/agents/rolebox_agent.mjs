// An agent in Node whose role has hooks: one turn, five lines of which are the hooks'. The model is made up.
//
//     prxbus up --role examples/roles/quality
//     prxbus adapter node > examples/agents/rolebox.mjs
//     node examples/agents/rolebox_agent.mjs

import { NotAllowed, Rolebox } from "./rolebox.mjs";

const rolebox = new Rolebox({ session: "session-2", agent: "example-agent", role: "quality" });

console.log("user:", await rolebox.chatMessage("Add a hello to app.ts"));
console.log("system:", await rolebox.systemTransform(["You write TypeScript."]));

// With a function behind it, a call runs the hooks of phase "before", the function, the hooks of phase "after".
const call = { path: "/workspace/app.ts", content: 'console.log("hello")' };
const validate = (args) => ({ encoding: "utf-8", ...args });
try {
  const args = await rolebox.toolBefore("write", call, validate);
  console.log("writes:", args);
  await rolebox.toolAfter("write", args, "written");
} catch (refused) {
  if (!(refused instanceof NotAllowed)) throw refused;
  console.log("refused:", refused.reason);
}

console.log("system:", await rolebox.systemTransform(["You write TypeScript."]));
await rolebox.event("session.idle", {});
if (rolebox.problem) console.log("without its hooks:", rolebox.problem);
