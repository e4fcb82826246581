package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/hookfabric/hookfabric/bus/chown"
)

// ReadHeaders reads a file of lines NAME: VALUE. Secrets belong there, as command
// lines are for everybody to see; so the file must be for its owner only. Without a
// path there are none.
func ReadHeaders(path string) (http.Header, error) {
	if path == "" {
		return nil, nil
	}
	if err := chown.Private(path); err != nil {
		return nil, err
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
			return nil, errors.New(path + ": line " + fmt.Sprint(n) + " is not a header; write NAME: VALUE") // not the line, which may be a secret
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}
