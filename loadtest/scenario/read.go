package scenario

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema/hooksyaml"
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
// scenario's name. The error is of the type [hooksyaml.Faults].
func Read(file string, body []byte) (*Scenario, error) {
	r := &reader{file: file, places: map[string]*yaml.Node{}}
	s := Default()
	s.Name = strings.TrimSuffix(path.Base(file), path.Ext(file))
	root := r.parse(body)
	if root == nil {
		return nil, r.report()
	}
	r.mapping("", root, reflect.ValueOf(&s).Elem())
	r.load(&s)
	if len(r.faults) == 0 {
		for _, p := range s.Check() {
			r.fault(r.place(p.Key, root), p.Message, p.Hint)
		}
	}
	if len(r.faults) > 0 {
		return nil, r.report()
	}
	return &s, nil
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

// reader reads one file.
type reader struct {
	file   string
	faults hooksyaml.Faults
	// places are the values of keys, by their path.
	places map[string]*yaml.Node
}

func (r *reader) fault(n *yaml.Node, message, hint string) {
	r.faults = append(r.faults, hooksyaml.Fault{File: r.file, Line: max(n.Line, 1), Column: max(n.Column, 1), Message: message, Hint: hint})
}

// report returns all faults, in the order of the lines.
func (r *reader) report() hooksyaml.Faults {
	slices.SortStableFunc(r.faults, func(a, b hooksyaml.Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return r.faults
}

// place returns the node of a key's value, or else the node that would contain it.
func (r *reader) place(key string, root *yaml.Node) *yaml.Node {
	for key != "" {
		if n := r.places[key]; n != nil {
			return n
		}
		key = key[:max(strings.LastIndexByte(key, '.'), 0)]
	}
	return root
}

// parse returns the file's only document, or nil after a fault.
func (r *reader) parse(body []byte) *yaml.Node {
	top := &yaml.Node{Line: 1, Column: 1}
	if len(body) > mostBytes {
		r.fault(top, "the file is too long", fmt.Sprintf("a scenario has at most %d bytes", mostBytes))
		return nil
	}
	loader, err := yaml.NewLoader(strings.NewReader(string(body)))
	if err != nil {
		r.fault(top, err.Error(), "")
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		r.syntax(err)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		r.fault(&second, "a second document begins here", "put everything into one document")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
		return nil
	}
	return doc.Content[0]
}

// syntax records the parser's error.
func (r *reader) syntax(err error) {
	if errors.Is(err, io.EOF) {
		r.fault(&yaml.Node{Line: 1, Column: 1}, "the file is empty", "write kind: fleet")
		return
	}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		r.fault(&yaml.Node{Line: e.Mark.Line, Column: e.Mark.Column}, "this is not valid YAML: "+strings.TrimSpace(e.ContextMsg+" "+e.Message), "correct the indentation and the quotes near this line")
		return
	}
	r.fault(&yaml.Node{Line: 1, Column: 1}, "this is not valid YAML: "+err.Error(), "")
}

// load checks that only one key sets the load, and sets what other keys imply.
func (r *reader) load(s *Scenario) {
	if r.places["runaway"] != nil && r.places["runaway.times"] == nil {
		s.Runaway.Times = usualTimes
	}
	if n := r.places["think"]; n != nil && r.places["rate"] == nil {
		s.Rate = 0 // the default
	} else if n != nil {
		r.fault(n, "rate and think both set the rate of tool calls", "remove one of them")
	}
	if len(s.Steps) == 0 {
		return
	}
	for _, key := range []string{"rate", "think", "for"} {
		if n := r.places[key]; n != nil {
			r.fault(n, "the steps already set it", "remove "+key+" or the steps")
		}
	}
	s.Rate, s.Think, s.For = 0, 0, 0
	for i := range s.Steps {
		step := &s.Steps[i]
		s.For += step.For
		if r.places[fmt.Sprintf("steps.%d.to", i+1)] == nil {
			step.To = step.Rate // a constant rate
		}
	}
}
