// Package hooksyaml reads hooks.yaml, the configuration that people write,
// into a [schema.Config]: flat, in registration order, every default filled in.
//
// It is strict. A key it does not know, a key that stands twice, a second
// document, a value of the wrong type, a field that does not fit its hook: each
// is a [Fault] with its line and column and what to write instead, and all of
// them are reported at once. A policy that was misread is worse than one that
// was refused, so nothing is guessed, and a file with one fault yields no
// configuration at all.
//
// The exception are the files of MassGen, which carry hooks beside much else:
// where an agent has a backend, the keys that are not ours are skipped, with
// one warning for each place, unless they look like a misspelling of ours.
//
// The package does no I/O. Read the files in this order: read.go (what becomes
// of the bytes), document.go and section.go (the shape of the file), hook.go
// and field.go (one hook), request.go (what http hooks send), python.go (how
// functions are run), fit.go and stage.go (what fits what), name.go (derived
// names), preset.go (hooks that nobody has to write); then write.go, which goes
// the way back.
package hooksyaml
