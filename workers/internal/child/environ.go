package child

import (
	"fmt"
	"slices"
	"strings"
)

// Environ selects the variables of a process from the worker's environment, name=value
// pairs: PATH, HOME, LANG, and those in names.
func Environ(all, names []string) ([]string, error) {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("env: %q is not a variable name; write names only, such as GITHUB_TOKEN; the worker's environment has the values", name)
		}
	}
	var env []string
	for _, kv := range all {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "LANG":
		default:
			if !slices.Contains(names, name) {
				continue
			}
		}
		env = append(env, kv)
	}
	return env, nil
}

// Value returns the value of name in env; empty if it is not set.
func Value(env []string, name string) string {
	for _, kv := range env {
		if n, value, _ := strings.Cut(kv, "="); n == name {
			return value
		}
	}
	return ""
}
