package scenario

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// files are the bundled scenarios.
//
//go:embed *.yaml
var files embed.FS

// Shipped returns the bundled scenario of that name.
func Shipped(name string) (*Scenario, error) {
	body, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no bundled scenario has the name %q; write one of %s", name, strings.Join(Names(), ", "))
	}
	return Read(name+".yaml", body)
}

// Names returns the names of the bundled scenarios.
func Names() []string {
	all, _ := files.ReadDir(".") // an embedded folder is always readable
	var names []string
	for _, f := range all {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// mostBytes limits the size of a file.
const mostBytes = 1 << 20

// Read decodes a scenario. file is the file's name, for errors, and the default of the
// scenario's name. Unknown keys, keys that occur twice and a second document are errors.
func Read(file string, body []byte) (*Scenario, error) {
	s := Default()
	s.Name = strings.TrimSuffix(path.Base(file), path.Ext(file))
	if err := s.decode(body); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if s.Runaway.Agents > 0 && s.Runaway.Times == 0 {
		s.Runaway.Times = usualTimes
	}
	if err := s.Wrong(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &s, nil
}

func (s *Scenario) decode(body []byte) error {
	if len(body) > mostBytes {
		return fmt.Errorf("the file is too long; a scenario has at most %d bytes", mostBytes)
	}
	var tree any
	if err := yaml.Load(body, &tree); err != nil {
		return fmt.Errorf("%w; correct the indentation and the quotes near this line", err)
	}
	text, err := schema.Marshal(plain(tree))
	if err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	err = json.Unmarshal(text, s, json.RejectUnknownMembers(true))
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		key := strings.ReplaceAll(strings.TrimPrefix(string(e.JSONPointer), "/"), "/", ".")
		if errors.Is(err, json.ErrUnknownName) {
			return fmt.Errorf("unknown key %q; loadtest/README.md has an example", key)
		}
		if e.Err != nil {
			return fmt.Errorf("%s: %w", key, e.Err)
		}
		return fmt.Errorf("%s: a %v is not valid here; write a value of the type %v, a rate such as 300/s or a share such as 5%%", key, e.JSONKind, e.GoType)
	}
	return err
}

// plain replaces shares such as 5% and rates such as 300/s by numbers, and mappings by those of
// JSON.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = plain(value)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case string:
		for suffix, unit := range map[string]float64{"%": 100, "/s": 1} {
			if number, ok := strings.CutSuffix(v, suffix); ok {
				if n, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
					return n / unit
				}
			}
		}
	}
	return v
}

// ReadFile reads the scenario in a file. It stops reading a file above the size limit.
func ReadFile(file string) (*Scenario, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the scenario: %w", err)
	}
	return Read(file, body)
}
