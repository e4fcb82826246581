package rules

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/action"
)

// texts are the texts of one event. Each field is read once.
type texts struct {
	event  *schema.Event
	view   *dispatch.View
	fields map[string]string
}

// action returns the facts of the call.
func (t *texts) action() *action.Action { return cond.Action(t.view) }

// field returns all texts in one of [schema.RuleFields], one per line.
func (t *texts) field(name string) string {
	s, ok := t.fields[name]
	if !ok {
		s = t.read(name)
		if t.fields == nil {
			t.fields = make(map[string]string)
		}
		t.fields[name] = s
	}
	return s
}

func (t *texts) read(name string) string {
	e := t.event
	switch name {
	case "tool_input":
		return stringsIn(e.ToolInput)
	case "tool_output":
		return stringsIn(e.ToolOutput)
	case "message":
		return stringsIn(e.Message)
	case "response":
		return stringsIn(e.Response)
	case "error":
		return e.Error
	case "prompt":
		return e.Prompt
	case "commands":
		return commands(t.action())
	}
	return ""
}

// all returns the texts in which keywords are searched, in lower case: all fields, and the facts of the
// call, in which quotes are removed and variables expanded.
func (t *texts) all() []byte {
	var b strings.Builder
	for _, name := range schema.RuleFields() {
		b.WriteString(lower(t.field(name)))
		b.WriteByte('\n')
	}
	a := t.action()
	for i := range a.Paths {
		b.WriteString(lower(a.Paths[i].Path))
		b.WriteByte('\n')
	}
	for _, host := range a.Hosts {
		b.WriteString(host)
		b.WriteByte('\n')
	}
	for i := range a.Code {
		b.WriteString(lower(a.Code[i].Text))
		b.WriteByte('\n')
	}
	for i := range a.Commands {
		b.WriteString(lower(a.Commands[i].Heredoc))
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// commands returns the commands of a shell, with their arguments, one per line.
func commands(a *action.Action) string {
	var b strings.Builder
	for i := range a.Commands {
		c := &a.Commands[i]
		b.WriteString(c.Name)
		for _, arg := range c.Args {
			b.WriteByte(' ')
			b.WriteString(arg)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// stringsIn returns the texts of a JSON value, one per line, with the names of members. Text that is
// not valid JSON ends it.
func stringsIn(raw jsontext.Value) string {
	if len(raw) == 0 {
		return ""
	}
	var b strings.Builder
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return b.String()
		}
		if token.Kind() == '"' {
			b.WriteString(token.String())
			b.WriteByte('\n')
		}
	}
}
