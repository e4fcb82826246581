package builtin

import (
	"fmt"
	"regexp"
	"strings"
)

// processView matches paths that depend on the process, so that the worker cannot follow
// them for the agent: a process's own files, and on macOS files by number.
var processView = regexp.MustCompile(`(?i)^/(?:proc/(?:self|thread-self|\d+)|dev/(?:fd|stdin|stdout|stderr)|\.vol)(?:/|$)`)

// isProcessView reports whether processView matches an absolute path. It checks first
// what differs in nearly all paths.
func isProcessView(path string) bool {
	top, _, _ := strings.Cut(path[1:], "/")
	return (strings.EqualFold(top, "proc") || strings.EqualFold(top, "dev") || strings.EqualFold(top, ".vol")) && processView.MatchString(path)
}

// A viewError is a path whose target depends on the process that opens it.
type viewError string

func (e viewError) Error() string {
	return fmt.Sprintf("%s leads each process to another file; name the file itself", string(e))
}
