// Package builtin has the hooks that are part of the fabric. They run inside the worker
// and need no other program.
//
// Each hook is one file with a test beside it, and one line in [Catalog]. Its options are
// a struct, which [options] reads strictly: with an unknown name or a wrong type, the
// hook fails to load, and the fabric denies its calls. A hook checks its options when it
// loads, not at a call.
//
// Some hooks are stages of the aggregator, which [Stage] makes: the delivery hooks, which
// select items for an agent and render them, and the gate of rounds. They are pure
// functions: they get their whole state as arguments, and return the state to store.
// Agents obey their texts, so the tests compare the texts with files in testdata.
package builtin
