import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { after, before, prompt, shim } from "./world.mjs";

test("where the daemon fails, the shim judges", async () => {
  shim("opencode");
  for (const tool of ["broken", "junk", "list", "quiet", '{"decision":"maybe"}', "{}"]) {
    const { message } = await before(tool).catch((err) => err);
    const id = readFileSync(join(process.env.HOOKFABRIC_STATE, "asked-id"), "utf8");
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.equal(message.replace(/\d+ms/, "…"), `hook --runtime opencode --event tool.execute.before --event-id ${id} --timeout … --managed`, tool);
  }
});

test("where nobody judges, nothing runs", async () => {
  for (const how of ["crash", "deny", "junk", "echo"]) {
    shim(how);
    await assert.rejects(before("broken"), /the fabric did not judge this call/, how);
  }
  await assert.rejects(prompt("broken"), /the fabric did not judge this call/);
});

test("what ran stays as it is", async () => {
  shim("crash");
  assert.deepEqual(await after("broken"), { title: "t", output: "text", metadata: { output: "text", exit: 0 } });
});

test("what cannot be sent does not run", async () => {
  const args = {};
  args.args = args;
  await assert.rejects(before("bash", args), /the fabric did not judge this call/);
});
