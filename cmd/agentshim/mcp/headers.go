package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// ReadHeaders reads a file of lines NAME: VALUE. Secrets belong there, as command
// lines are for everybody to see; so the file must be for its owner only. Without a
// path there are none.
func ReadHeaders(path string) (http.Header, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read %s; run chmod 600 on it", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, errors.New(path + ": line " + fmt.Sprint(n) + " is no header; write NAME: VALUE") // not the line, which may be a secret
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}
