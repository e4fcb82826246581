// Package builtin holds the hooks that come with the fabric. They run inside
// the worker and need no program beside it.
//
// Each hook is one file with its test beside it and one line in [Catalog]. Its
// options are a struct, read by [options] with all its strictness: an unknown
// name or a wrong type means that the hook can not be loaded, and the calls of
// a hook that can not be loaded are denied. What a hook has to check, it checks
// there and not when it is asked.
//
// Some are stages of the aggregator, which [Stage] makes: the delivery hooks,
// which choose of what waits for an agent and say it, and the gate of rounds.
// They are pure: all that they know is handed to them, and what they are to
// remember they return. Their texts are what agents obey, and stand in testdata.
package builtin
