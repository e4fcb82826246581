import assert from "node:assert/strict";
import { test } from "node:test";
import { after, before, prompt } from "./world.mjs";

test("where it is wished so, what nobody judged runs", async () => {
  assert.equal((await before("bash")).command, "rm -rf /");
  assert.equal((await prompt("hello"))[0].text, "hello");
  assert.equal((await after("bash")).output, "text");
});
