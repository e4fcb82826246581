import assert from "node:assert/strict";
import { test } from "node:test";
import { before, shim } from "./world.mjs";

test("where the daemon and the shim hang, nothing runs", async () => {
  shim("hang");
  await Promise.all(["hang", "drip", "broken"].map((tool) => assert.rejects(before(tool), /nobody judged this call/, tool)));
});
