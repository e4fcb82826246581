// Package builtin holds the hooks that come with the fabric. They run inside
// the worker and need no program beside it.
//
// Each hook is one file with its test beside it and one line in [Catalog]. Its
// options are a struct, read by [options] with all its strictness: an unknown
// name or a wrong type means that the hook can not be loaded, and the calls of
// a hook that can not be loaded are denied. What a hook has to check, it checks
// there and not when it is asked.
package builtin
