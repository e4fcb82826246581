// Package hooksyaml reads hooks.yaml, the configuration that people write, into a
// [schema.Config]. The result is flat and in registration order, with every default filled in.
//
// The reader is strict. It reports an unknown or repeated key, a second document, a value of
// the wrong type, and a key that does not fit its hook. Each is a [Fault] with line, column and
// what to write instead. Read reports all faults at once. A misread policy is worse than a
// rejected one, so Read never guesses. A file with one fault yields no configuration.
//
// Files of MassGen are an exception, because they contain hooks beside much else. If an agent
// has a backend, the reader skips unknown keys with one warning for each place. A key that
// looks like a misspelling of a known one is still a fault.
//
// # Concurrency
//
// The package does no I/O and keeps no state. Several goroutines may call its functions.
//
// # Usage
//
//	doc, err := hooksyaml.Read("hooks.yaml", data, hooksyaml.Options{})
//	if err != nil {
//		return err // every fault, with its line and column
//	}
//	fmt.Println(len(doc.Config.Hooks), "hooks")
//
// # Files
//
// Read the files in this order:
//
//   - read.go: the entry point
//   - document.go, section.go: the structure of the file
//   - hook.go, field.go: one hook
//   - request.go: http hooks
//   - python.go: Python hosts
//   - fit.go, stage.go: which keys fit which hook
//   - name.go: derived names
//   - preset.go: hooks of presets
//   - write.go: the reverse direction
package hooksyaml
