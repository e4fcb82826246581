package render_test

import (
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

// conversation is the input of a golden file.
type conversation struct {
	Messages []schema.Message `json:"messages"`
	Tools    []render.Tool    `json:"tools"`
}

// archive reads a file of testdata.
func archive(t testing.TB, name string) []txtar.File {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return a.Files
}

// golden compares files with an archive of testdata.
func golden(t *testing.T, name string, got []txtar.File) {
	t.Helper()
	path, data := filepath.Join("testdata", name), txtar.Format(&txtar.Archive{Files: got})
	if *update {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(data)); diff != "" {
		t.Errorf("%s differs (-file +code):\n%s", path, diff)
	}
}

// Every conversation has the request in its golden file in every format, and the request
// is legal.
func TestConversationsMatchTheGoldenFiles(t *testing.T) {
	for _, f := range render.Formats() {
		t.Run(string(f), func(t *testing.T) {
			var got []txtar.File
			for _, file := range archive(t, "conversations.txtar") {
				var c conversation
				decode(t, file.Data, &c)
				r, err := render.Conversation(f, c.Messages, c.Tools)
				if err != nil {
					t.Fatalf("%s: %v", file.Name, err)
				}
				if err := illegal(f, r); err != nil {
					t.Errorf("%s: %v", file.Name, err)
				}
				got = append(got, txtar.File{Name: file.Name, Data: indented(t, r)})
			}
			golden(t, "conversation-"+string(f)+".txtar", got)
		})
	}
}

// Every answer has the message or error in the golden file.
func TestAnswersMatchTheGoldenFile(t *testing.T) {
	var got []txtar.File
	for _, file := range archive(t, "answers.txtar") {
		format, _, _ := strings.Cut(file.Name, "/")
		m, err := render.Read(render.Format(format), file.Data)
		data := indented(t, m)
		if err != nil {
			data = []byte(err.Error() + "\n")
		}
		for _, c := range m.ToolCalls {
			if err := render.CallError(&c); err != nil {
				data = append(data, err.Error()+"\n"...)
			}
		}
		got = append(got, txtar.File{Name: file.Name, Data: data})
	}
	golden(t, "answers.golden.txtar", got)
}

// An invalid conversation is an error in every format.
func TestInvalidConversationsAreErrors(t *testing.T) {
	user := schema.Message{Role: schema.RoleUser, Content: "go"}
	calls := schema.Message{Role: schema.RoleAssistant, ToolCalls: []schema.ToolCall{{ID: "c1", Name: "Bash"}, {ID: "c2", Name: "Read"}}}
	result := func(id string) schema.Message {
		return schema.Message{Role: schema.RoleTool, Result: &schema.ToolOutcome{ID: id, Name: "Bash", Output: jsontext.Value(`1`)}}
	}
	for name, c := range map[string]struct {
		says     string
		messages []schema.Message
		tools    []render.Tool
	}{
		"nothing":                         {"has only system messages", nil, nil},
		"the system alone":                {"has only system messages", []schema.Message{{Role: schema.RoleSystem, Content: "be"}}, nil},
		"a call without a result":         {`the call "c2" of "Read" in message 2 has no result`, []schema.Message{user, calls, result("c1")}, nil},
		"a call and the next message":     {`the call "c1" of "Bash" in message 2 has no result`, []schema.Message{user, calls, calls}, nil},
		"a result without a call":         {`message 2 is a result of the call "c1"`, []schema.Message{user, result("c1")}, nil},
		"a result that came before":       {`message 4 is a result of the call "c1"`, []schema.Message{user, calls, result("c1"), result("c1")}, nil},
		"an unknown role":                 {`message 1: the role is "developer"`, []schema.Message{{Role: "developer"}}, nil},
		"a tool without a result":         {"message 1: it has the role tool and no tool_result", []schema.Message{{Role: schema.RoleTool}}, nil},
		"a tool with content":             {"write it as the output", []schema.Message{{Role: schema.RoleTool, Content: "x", Result: &schema.ToolOutcome{}}}, nil},
		"a user with a result":            {"write the role tool", []schema.Message{{Role: schema.RoleUser, Result: &schema.ToolOutcome{}}}, nil},
		"a user who calls":                {"only the assistant calls tools", []schema.Message{{Role: schema.RoleUser, ToolCalls: calls.ToolCalls}}, nil},
		"a call without a tool":           {"its call 1 has no name", []schema.Message{{Role: schema.RoleAssistant, ToolCalls: []schema.ToolCall{{ID: "c"}}}}, nil},
		"a user's message of another API": {"message 1 has no content", []schema.Message{{Role: schema.RoleUser, Native: jsontext.Value(`{"role":"user","content":[{"type":"odd"}]}`)}}, nil},
		"a tool without a name":           {"tool 1 has no name", []schema.Message{user}, []render.Tool{{}}},
		"a tool with a list for schema":   {`the schema of the tool "Bash" is a list`, []schema.Message{user}, []render.Tool{{Name: "Bash", Schema: jsontext.Value(`[]`)}}},
	} {
		for _, f := range render.Formats() {
			if _, err := render.Conversation(f, c.messages, c.tools); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v", name, f, err)
			}
		}
	}
	if _, err := render.Conversation("yaml", []schema.Message{user}, nil); err == nil || !strings.Contains(err.Error(), "write one of") {
		t.Errorf("an unknown format: %v", err)
	}
	if _, err := render.Read("yaml", jsontext.Value(`{}`)); err == nil || !strings.Contains(err.Error(), "write one of") {
		t.Errorf("an unknown format: %v", err)
	}
}

// Content of a user in an API's own parts is passed on to that API.
func TestAPictureIsPassedOn(t *testing.T) {
	for f, native := range map[render.Format]string{
		render.Anthropic: `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"see"}]}`,
		render.OpenAI:    `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"text","text":"see"}]}`,
		render.Gemini:    `{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}},{"text":"see"}]}`,
	} {
		for _, text := range []string{"", "see"} {
			r, err := render.Conversation(f, []schema.Message{{Role: schema.RoleUser, Content: text, Native: jsontext.Value(native)}}, nil)
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			if got := string(append(r.Messages, r.Contents...)[0]); strings.Count(got, "aGk=") != 1 || strings.Count(got, "see") != 1 {
				t.Errorf("%s: %s", f, got)
			}
		}
	}
}
