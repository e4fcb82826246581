// Package packs has the shipped packs of rules. Each is a YAML file with its own test cases, which
// the tests of package rules run.
//
// Only this module imports it.
package packs

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// All returns the packs by name, each with the text of its file.
func All() map[string]string {
	all := make(map[string]string)
	names, _ := fs.Glob(files, "*.yaml") // the pattern is valid
	for _, name := range names {
		if text, err := files.ReadFile(name); err == nil {
			all[strings.TrimSuffix(name, path.Ext(name))] = string(text)
		}
	}
	return all
}
