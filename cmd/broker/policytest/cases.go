package policytest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// A File is a file of test cases.
type File struct {
	// Config is the path of the hooks.yaml, relative to the file; empty: the hooks.yaml beside the
	// file, or in the folder above.
	Config string `json:"config"`
	Cases  []Case `json:"cases"`

	path string
}

// A Case is one event with the verdict that it should have, or several in turn.
type Case struct {
	Name string `json:"name"`
	// Hooks are hooks that fail in this case, by name.
	Hooks map[string]Stub `json:"hooks"`
	Step
	// Steps are the events of a case with several.
	Steps []Step `json:"steps"`

	file string
	line int
}

// A Stub says how a hook fails.
type Stub struct {
	Fails Failure `json:"fails"`
}

// A Failure is a kind of failure of a hook.
type Failure string

// The failures of hooks: no answer before the deadline, an error, an unreadable answer, no worker for the pool.
const (
	Timeout  Failure = "timeout"
	Crash    Failure = "crash"
	Junk     Failure = "junk"
	NoWorker Failure = "no_worker"
)

// A Step is an event and what to expect of its verdict.
type Step struct {
	// Event is the event in hookfabric's form. Agent, session and id have defaults.
	Event  jsontext.Value `json:"event"`
	Expect Expect         `json:"expect"`
}

// Expect is what a verdict should have. Absent members are not checked.
type Expect struct {
	// Decision is the decision; continue also stands for allow.
	Decision schema.Decision `json:"decision"`
	// By is the name of the hook that decided.
	By string `json:"by"`
	// Reason is a part of the reason, or a pattern between slashes.
	Reason        string         `json:"reason"`
	UpdatedInput  jsontext.Value `json:"updated_input"`
	UpdatedOutput jsontext.Value `json:"updated_output"`
	// Asked and NotAsked are names of hooks that ran, and that did not.
	Asked    []string `json:"asked"`
	NotAsked []string `json:"not_asked"`
	// HookErrors and Injections are parts of their texts.
	HookErrors []string `json:"hook_errors"`
	Injections []string `json:"injections"`
}

// maxFile is the largest file of cases.
const maxFile = 8 << 20

// Read reads a file of cases. Its errors name the place in the file.
func Read(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cases: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s has %d bytes; the limit is %d", path, len(data), maxFile)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(root.Content) == 0 {
		return nil, fmt.Errorf("%s is empty; write a list of cases below the key cases", path)
	}
	f := &File{path: path}
	if err := f.decode(root.Content[0]); err != nil {
		return nil, err
	}
	return f, f.check(root.Content[0])
}

// decode decodes the document by way of JSON, whose decoder names the place of an error.
func (f *File) decode(n *yaml.Node) error {
	var v any
	if err := n.Decode(&v); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("%s:%d:%d: keys must be texts: %w", f.path, n.Line, n.Column, err)
	}
	err = json.Unmarshal(data, f, json.RejectUnknownMembers(true))
	fault, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	key, at := find(n, fault.JSONPointer)
	what := fmt.Sprintf("%s is %s, which does not fit", fault.JSONPointer.LastToken(), schema.KindName(fault.JSONKind))
	if errors.Is(fault.Err, json.ErrUnknownName) {
		what, at = fmt.Sprintf("there is no key %q here; write one of the documented keys", fault.JSONPointer.LastToken()), key
	}
	return fmt.Errorf("%s:%d:%d: %s", f.path, at.Line, at.Column, what)
}

// find returns the node at a pointer, or the last one on the way to it, and its key.
func find(n *yaml.Node, at jsontext.Pointer) (key, value *yaml.Node) {
	key = n
	for token := range at.Tokens() {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next := n
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == token {
					key, next = n.Content[i], n.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(token); err == nil && i < len(n.Content) {
				next = n.Content[i]
			}
		}
		n = next
	}
	return key, n
}

// check checks what the types do not.
func (f *File) check(root *yaml.Node) error {
	if len(f.Cases) == 0 {
		return fmt.Errorf("%s has no cases; write them below the key cases", f.path)
	}
	for i := range f.Cases {
		c := &f.Cases[i]
		_, n := find(root, jsontext.Pointer("/cases/"+strconv.Itoa(i)))
		c.file, c.line = f.path, n.Line
		if c.Name == "" {
			c.Name = "case " + strconv.Itoa(i+1)
		}
		if err := c.check(); err != nil {
			return fmt.Errorf("%s:%d:%d: the case %q %w", f.path, n.Line, n.Column, c.Name, err)
		}
	}
	return nil
}

func (c *Case) check() error {
	if (len(c.Steps) > 0) == (len(c.Event) > 0) {
		return errors.New("needs an event, or steps with an event each")
	}
	if len(c.Event) > 0 {
		c.Steps = []Step{c.Step}
	}
	for name, stub := range c.Hooks {
		switch stub.Fails {
		case Timeout, Crash, Junk, NoWorker:
		default:
			return fmt.Errorf("has the hook %s fail by %q; write timeout, crash, junk or no_worker", name, stub.Fails)
		}
	}
	for _, s := range c.Steps {
		if _, _, err := s.request(); err != nil {
			return err
		}
		if d := s.Expect.Decision; !known(d) {
			return fmt.Errorf("expects the decision %q; write continue, allow, ask, deny, retry, fail or stop", d)
		}
		if _, err := matcher(s.Expect.Reason); err != nil {
			return fmt.Errorf("expects a reason whose pattern is not valid: %w", err)
		}
	}
	return nil
}

func known(d schema.Decision) bool {
	switch d {
	case schema.None, schema.Continue, schema.Allow, schema.Ask, schema.Deny, schema.Retry, schema.Fail, schema.Stop:
		return true
	}
	return false
}

// request returns the routing and the body of a step's event.
func (s *Step) request() (schema.Routing, []byte, error) {
	if s.Event.Kind() != '{' {
		return schema.Routing{}, nil, errors.New("has an event that is not a mapping; write event: {hook_type: PreToolUse, …}")
	}
	e, err := schema.ReadEvent(s.Event)
	if err != nil {
		return schema.Routing{}, nil, fmt.Errorf("has an event that cannot be read: %w", err)
	}
	t, err := schema.ParseEventType(string(e.HookType))
	if err != nil {
		return schema.Routing{}, nil, fmt.Errorf("has an event with an unknown hook_type: %w", err)
	}
	if t.HasTool() && e.ToolName == "" {
		return schema.Routing{}, nil, errors.New("has an event about a tool without tool_name")
	}
	if e.ToolKind == "" && t.HasTool() {
		e.ToolKind, e.ToolArgs = schema.ToolFacts(e.Runtime, e.ToolName, e.ToolInput)
	}
	r := schema.Routing{Event: t, Agent: e.AgentID, Session: e.SessionID, Tool: e.ToolName, ID: e.EventID}
	for at, fallback := range map[*string]string{&r.Agent: "agent", &r.Session: "session", &r.ID: "00000000-0000-7000-8000-000000000000"} {
		if *at == "" {
			*at = fallback
		}
	}
	body, err := schema.Marshal(e)
	if err != nil {
		return r, nil, fmt.Errorf("has an event that cannot be written: %w", err)
	}
	if _, err := schema.DecodeEvent(body, r); err != nil {
		return r, nil, fmt.Errorf("has an event that a broker would reject: %w", err)
	}
	return r, body, nil
}

// ConfigPath returns the path of the hooks.yaml that the cases are for.
func (f *File) ConfigPath() (string, error) {
	dir := filepath.Dir(f.path)
	if f.Config != "" {
		return filepath.Join(dir, filepath.FromSlash(f.Config)), nil
	}
	for _, folder := range []string{dir, filepath.Join(dir, "..")} {
		if p := filepath.Join(folder, "hooks.yaml"); isFile(p) {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s has no config, and there is no hooks.yaml beside it or in the folder above; write config: with its path", f.path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Find returns the files of cases at paths. In a folder these are the YAML files with a key cases.
func Find(paths []string) ([]string, error) {
	var all []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("cannot read the cases: %w", err)
		}
		if !info.IsDir() {
			all = append(all, p)
			continue
		}
		err = filepath.WalkDir(p, func(name string, d os.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("looking for cases: %w", err)
			}
			if ext := strings.ToLower(filepath.Ext(name)); d.Type().IsRegular() && (ext == ".yaml" || ext == ".yml") && hasCases(name) {
				all = append(all, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// hasCases reports whether a YAML file has a key cases.
func hasCases(path string) bool {
	data, err := os.ReadFile(path)
	return err == nil && len(data) <= maxFile && (strings.HasPrefix(string(data), "cases:") || strings.Contains(string(data), "\ncases:"))
}
