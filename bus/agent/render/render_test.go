package render_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// rendered is one event and its verdict.
type rendered struct {
	name string
	render.Judged
}

func cases(t *testing.T) (all []rendered) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "cases.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		name := strings.TrimSuffix(archive.Files[i].Name, ".event")
		if archive.Files[i+1].Name != name+".verdict" {
			t.Fatalf("after the event of %s its verdict must follow, not %s", name, archive.Files[i+1].Name)
		}
		c := rendered{name: name, Judged: render.Judged{Event: &schema.Event{}, Verdict: &schema.Verdict{}}}
		decode(t, archive.Files[i].Data, c.Event)
		decode(t, archive.Files[i+1].Data, c.Verdict)
		all = append(all, c)
	}
	return all
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := schema.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	data, err := schema.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	value := jsontext.Value(data)
	if err := value.Indent(); err != nil {
		t.Fatal(err)
	}
	return append(value, '\n')
}

// Every case has the messages in its golden file, in every format.
func TestMessagesMatchTheGoldenFiles(t *testing.T) {
	for _, f := range render.Formats() {
		t.Run(string(f), func(t *testing.T) {
			got := &txtar.Archive{}
			for _, c := range cases(t) {
				m, err := render.Render(f, c.Event, c.Verdict)
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				got.Files = append(got.Files, txtar.File{Name: c.name, Data: indented(t, m)})
			}
			path := filepath.Join("testdata", string(f)+".txtar")
			if *update {
				if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(txtar.Format(got))); diff != "" {
				t.Errorf("%s differs (-file +code):\n%s", path, diff)
			}
		})
	}
}

// The results of concurrent calls come first, in the order of the calls.
func TestResultsOfATurnComeFirst(t *testing.T) {
	call := func(id string) render.Judged {
		return render.Judged{
			Event: &schema.Event{HookType: schema.PostToolUse, ToolName: "Read", ToolUseID: id, ToolOutput: jsontext.Value(`"of ` + id + `"`)},
			Verdict: &schema.Verdict{Injections: []schema.Injection{
				{Content: "text after " + id, Strategy: schema.UserMessage}, {Content: "noted with " + id}}},
		}
	}
	want := map[render.Format][]string{
		render.Anthropic: {"of c1", "of c2", "noted with c1", "noted with c2", "text after c1", "text after c2"},
	}
	for _, f := range render.Formats() {
		m, err := render.Turn(f, []render.Judged{call("c1"), call("c2")})
		if err != nil {
			t.Fatal(err)
		}
		order := want[f]
		if order == nil {
			order = []string{"of c1", "noted with c1", "of c2", "noted with c2", "text after c1", "text after c2"}
		}
		all, at := bytes.Join(toBytes(m.Messages), nil), 0
		for _, text := range order {
			i := bytes.Index(all[at:], []byte(text))
			if i < 0 {
				t.Errorf("%s: %q is not at its place in %s", f, text, all)
				break
			}
			at += i
		}
	}
}

func toBytes(values []jsontext.Value) (all [][]byte) {
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

func TestVerdictsThatCannotBeRenderedAreErrors(t *testing.T) {
	for name, c := range map[string]struct {
		format render.Format
		event  schema.Event
		v      schema.Verdict
		says   string
	}{
		"a result without a call id":   {render.Anthropic, schema.Event{HookType: schema.PostToolUse, ToolName: "Read"}, schema.Verdict{}, "tool_use_id"},
		"a refusal without a call id":  {render.Grok, schema.Event{HookType: schema.PreToolUse}, schema.Verdict{Decision: schema.Deny}, "tool_use_id"},
		"a result without a tool name": {render.Gemini, schema.Event{HookType: schema.PostToolUse, ToolUseID: "c"}, schema.Verdict{}, "tool_name"},
		"an unfetched injection":       {render.Gemini, schema.Event{}, schema.Verdict{Injections: []schema.Injection{{Object: &schema.Object{Size: 9}}}}, "was not fetched"},
		"an unknown format":            {"yaml", schema.Event{}, schema.Verdict{}, "openai-structured"},
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := render.Render(c.format, &c.event, &c.v); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

func TestOnlyFormatsAreParsed(t *testing.T) {
	for _, f := range render.Formats() {
		if got, err := render.ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("%s: %s, %v", f, got, err)
		}
	}
	if f, err := render.ParseFormat("OpenAI"); err == nil || !strings.Contains(err.Error(), "write one of anthropic, openai") {
		t.Errorf("%s, %v", f, err)
	}
}
