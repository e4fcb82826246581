package model_test

import (
	"bufio"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/schema"
)

// A vendor is one protocol as clients speak it.
type vendor struct {
	path string
	// first asks for the agent's first turn, second says what came of it, and aside
	// asks for something else.
	first, second, aside string
	// called and said find a tool's call and a text in the data of the answer's events.
	called, said string
	// done is the data of the event that ends the script; empty: a text of blocks.
	done string
}

func vendors() map[string]vendor {
	return map[string]vendor{
		"messages": {
			path:  "/v1/messages?beta=true",
			first: `{"model":"m","stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"do it"}]}`,
			second: `{"model":"m","stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"do it"},
				{"role":"assistant","content":[{"type":"tool_use","id":"call_0_0","name":"Bash","input":{"command":"ls"}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0_0","content":"a \u003cb\u003e"}]}]}`,
			aside:  `{"model":"m","stream":true,"messages":[{"role":"user","content":"a title"}]}`,
			called: `"partial_json":"{\"command\":\"ls\"}"`, said: `"text":"all done"`,
		},
		"responses": {
			path:  "/v1/responses",
			first: `{"tools":[{"type":"function","name":"Bash"}],"input":[{"type":"message","role":"user"}]}`,
			second: `{"tools":[{"type":"function","name":"Bash"}],"input":[{"type":"message","role":"user"},
				{"type":"message","role":"assistant"},{"type":"function_call","call_id":"call_0_0"},
				{"type":"function_call_output","call_id":"call_0_0","output":"a <b>"}]}`,
			aside:  `{"input":[{"type":"message","role":"user"}]}`,
			called: `"arguments":"{\"command\":\"ls\"}","call_id":"call_0_0","name":"Bash"`, said: `"text":"all done"`,
		},
		"completions": {
			path:  "/v1/chat/completions",
			first: `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"Bash"}}],"messages":[{"role":"user","content":"do it"}]}`,
			second: `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"Bash"}}],"messages":[{"role":"user","content":"do it"},
				{"role":"assistant","content":null,"tool_calls":[{"id":"call_0_0","type":"function","function":{"name":"Bash","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"call_0_0","content":"a <b>"}]}`,
			aside:  `{"model":"m","stream":true,"messages":[{"role":"user","content":"a title"}]}`,
			called: `"function":{"arguments":"{\"command\":\"ls\"}","name":"Bash"},"id":"call_0_0"`, said: `"content":"all done"`, done: `"content":"done"`,
		},
		"contents": {
			path:  "/v1beta/models/m:streamGenerateContent?alt=sse",
			first: `{"tools":[{"functionDeclarations":[{"name":"Bash"}]}],"contents":[{"role":"user","parts":[{"text":"do it"}]}]}`,
			second: `{"tools":[{"functionDeclarations":[{"name":"Bash"}]}],"contents":[{"role":"user"},{"role":"model"},
				{"role":"user","parts":[{"functionResponse":{"response":{"output":"a <b>"}}}]}]}`,
			aside:  `{"contents":[{"role":"user"}]}`,
			called: `"functionCall":{"args":{"command":"ls"},"id":"call_0_0","name":"Bash"}`, said: `"text":"all done"`,
		},
	}
}

func TestTheScript(t *testing.T) {
	for name, v := range vendors() {
		t.Run(name, func(t *testing.T) {
			s := model.Start(model.Turn{Calls: []model.Call{{Tool: "Bash", Input: map[string]string{"command": "ls"}}}},
				model.Turn{Text: "all done"})
			t.Cleanup(s.Close)
			for _, ask := range []struct{ body, want string }{
				{v.first, v.called},
				{v.aside, cmp.Or(v.done, `"text":"done"`)},
				{v.first, v.called}, // a client that asks again gets the same
				{v.second, v.said},
			} {
				if got := post(t, s.URL+v.path, ask.body); !strings.Contains(got, ask.want) {
					t.Errorf("asked\n%s\nit answers without %s:\n%s", ask.body, ask.want, got)
				}
			}
			turns := []int{}
			for _, r := range s.All() {
				turns = append(turns, r.Turn)
			}
			if diff := gocmp.Diff([]int{0, -1, 0, 1}, turns); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
			last := s.Requests()[2]
			if !strings.Contains(last.Texts(), "a <b>\n") || !slices.Equal(last.Tools, []string{"Bash"}) {
				t.Errorf("of the last request it remembers the tools %q and the texts %q", last.Tools, last.Texts())
			}
		})
	}
}

// post returns the data of all events of an answer, each of which must be JSON.
func post(t *testing.T, url, body string) string {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(r.Body)
		t.Fatalf("%s: %s", r.Status, said)
	}
	var all strings.Builder
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var v any
		if err := schema.Unmarshal([]byte(data), &v); err != nil {
			t.Errorf("an event is no JSON: %s", data)
		}
		all.WriteString(data + "\n")
	}
	return all.String()
}

func TestUnknownRequestsAreErrors(t *testing.T) {
	s := model.Start()
	t.Cleanup(s.Close)
	r, err := http.Get(s.URL + "/api/hello")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown address is answered %s", r.Status)
	}
	if diff := gocmp.Diff([]string{"GET /api/hello"}, s.Odd()); diff != "" {
		t.Errorf("odd requests (-want +got):\n%s", diff)
	}
	r, err = http.Post(s.URL+"/v1/messages", "application/json", strings.NewReader("{"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("half a request is answered %s", r.Status)
	}
}
