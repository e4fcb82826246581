import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { before, sessions, shim } from "./world.mjs";

test("where the daemon and the shim hang, nothing runs", async () => {
  shim("hang");
  await Promise.all(["hang", "drip", "broken"].map((tool) => assert.rejects(before(tool), /the fabric did not judge this call/, tool)));
});

test("where OpenCode hangs, a quarter of the call's time is waited for it", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  sessions.ses_slow = () => new Promise(() => {});
  const refused = assert.rejects(before("bash", {}, "ses_slow"), /OpenCode did not answer within 250ms/);
  mock.timers.tick(250);
  await refused;
});
