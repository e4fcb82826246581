package model_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
)

// A loop's model answers what it sees, without tools too, and remembers it.
func TestTextsOfARequest(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/messages": `{"system":[{"type":"text","text":"be"}],"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a"},{"type":"text","text":"the format"}]}]}`,
		"/v1/chat/completions": `{"messages":[{"role":"system","content":"be"},{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"Bash","arguments":"ls"}}]},
			{"role":"tool","tool_call_id":"c1","content":"a\nthe format"}]}`,
		"/v1beta/models/m:generateContent": `{"systemInstruction":{"parts":[{"text":"be"}]},"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"Bash","args":{"command":"ls"}},"thoughtSignature":"x"}]},
			{"role":"user","parts":[{"functionResponse":{"name":"Bash","response":{"output":"a\nthe format"}}}]}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			m := model.StartFunc(func(r model.Request) model.Turn {
				if r.Saw("the format") && r.Turn == 1 && r.Nth == 1 {
					return model.Turn{Text: "as you wish"}
				}
				return model.Turn{Text: "no"}
			})
			t.Cleanup(m.Close)
			for _, want := range []string{"no", "as you wish"} {
				if code, said := ask(t, http.DefaultClient, m.URL+path, body); code != http.StatusOK || !strings.Contains(said, want) {
					t.Errorf("%d %s; it should say %q", code, said, want)
				}
			}
			r := m.Requests()[1]
			var said []string
			for _, one := range r.Messages {
				if one.Role != "system" {
					said = append(said, one.Text)
				} else {
					r.System += one.Text
				}
			}
			if diff := cmp.Diff([]string{"go", "ls", "a\nthe format"}, said); diff != "" || r.System != "be" || r.Last().Text != "a\nthe format" {
				t.Errorf("the system says %q, and the conversation is (-want +got):\n%s", r.System, diff)
			}
		})
	}
}

func ask(t *testing.T, c *http.Client, url, body string) (int, string) {
	t.Helper()
	r, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(said)
}

// A model that does not listen can fail in all ways, in no time.
func TestFaultsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.Make(func(r model.Request) model.Turn {
			return []model.Turn{{Status: 429, RetryAfter: "7", Text: "slow down"}, {Status: 500}, {Raw: "junk"}, {Cut: true, Text: "half"}, {Hang: true}}[r.Nth]
		})
		defer m.Close()
		for _, want := range []struct {
			code int
			says string
		}{{429, `"slow down"`}, {500, `"scripted"`}, {200, "junk"}, {200, `"max_tokens"`}} {
			if code, said := ask(t, m.Client(), m.URL+"/v1/messages", `{"messages":[]}`); code != want.code || !strings.Contains(said, want.says) {
				t.Errorf("%d %s; want %d and %q", code, said, want.code, want.says)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL+"/v1/messages", strings.NewReader(`{"messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		answer, err := m.Client().Do(r)
		if err == nil {
			answer.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
