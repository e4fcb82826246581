package builtin

import (
	"fmt"
	"regexp"
	"strings"
)

// processView is a path that leads each process elsewhere, so that the worker
// cannot follow it for the agent: a process's own files, and on macOS files by
// their numbers.
var processView = regexp.MustCompile(`(?i)^/(?:proc/(?:self|thread-self|\d+)|dev/(?:fd|stdin|stdout|stderr)|\.vol)(?:/|$)`)

// isProcessView reports whether processView matches an absolute path, and looks at first
// where nearly all paths differ.
func isProcessView(path string) bool {
	top, _, _ := strings.Cut(path[1:], "/")
	return (strings.EqualFold(top, "proc") || strings.EqualFold(top, "dev") || strings.EqualFold(top, ".vol")) && processView.MatchString(path)
}

// A viewError is the path at which a place depends on the process that opens it.
type viewError string

func (e viewError) Error() string {
	return fmt.Sprintf("%s leads each process to another file; name the file itself", string(e))
}
