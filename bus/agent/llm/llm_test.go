package llm_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/agent/llm"
	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/schema"
)

func called(t *testing.T, opt llm.Options) *llm.Client {
	t.Helper()
	if opt.Model == "" {
		opt.Model = "m"
	}
	c, err := llm.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask() []schema.Message {
	return []schema.Message{{Role: schema.RoleSystem, Content: "be brief"}, {Role: schema.RoleUser, Content: "build it"}}
}

func tools() []render.Tool { return []render.Tool{{Name: "Bash", Description: "runs a command"}} }

// A conversation goes to the model and back in every format.
func TestAConversationInEveryFormat(t *testing.T) {
	for _, f := range render.Formats() {
		t.Run(string(f), func(t *testing.T) {
			m := model.Start(model.Turn{Text: "I look.", Calls: []model.Call{{Tool: "Bash", Input: map[string]string{"command": "ls"}}}}, model.Turn{Text: "all built"})
			t.Cleanup(m.Close)
			c := called(t, llm.Options{Format: f, URL: m.URL, MaxTokens: 100})
			messages := ask()
			first, err := c.Call(t.Context(), messages, tools())
			if err != nil {
				t.Fatal(err)
			}
			want := []schema.ToolCall{{ID: "call_0_0", Name: "Bash", Input: jsontext.Value(`{"command":"ls"}`)}}
			if diff := cmp.Diff(want, first.ToolCalls); diff != "" || first.Content != "I look." || first.Role != schema.RoleAssistant {
				t.Errorf("it says %q, and calls (-want +got):\n%s", first.Content, diff)
			}
			messages = append(messages, first, schema.Message{Role: schema.RoleTool,
				Result: &schema.ToolOutcome{ID: "call_0_0", Name: "Bash", Output: jsontext.Value(`"a b"`), Notes: []string{"hurry"}}})
			last, err := c.Call(t.Context(), messages, tools())
			if err != nil || last.Content != "all built" || len(last.ToolCalls) > 0 {
				t.Errorf("%+v, %v", last, err)
			}
			r, ok := m.At(1)
			if !ok || !r.Saw("be brief") || !r.Saw("a b") || !r.Saw("hurry") || !strings.Contains(string(r.Body), `100`) {
				t.Errorf("the model was asked %s", r.Body)
			}
			if odd := m.Odd(); len(odd) > 0 {
				t.Errorf("it was asked at %q", odd)
			}
		})
	}
}

// The address may include the API's version or not.
func TestAddressesWithAndWithoutVersion(t *testing.T) {
	for _, path := range []string{"", "/", "/v1", "/v1/"} {
		m := model.Start()
		t.Cleanup(m.Close)
		c := called(t, llm.Options{Format: render.OpenAI, URL: m.URL + path})
		if _, err := c.Call(t.Context(), ask(), nil); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// The key is read before each request, and sent only in the header that the API expects.
func TestTheKeyIsSentOnlyInItsHeader(t *testing.T) {
	const secret = "s3cr3t-of-this-test"
	for f, header := range map[render.Format]string{render.Anthropic: "X-Api-Key", render.OpenAI: "Authorization", render.Grok: "Authorization", render.Gemini: "X-Goog-Api-Key"} {
		t.Run(string(f), func(t *testing.T) {
			var got []string
			elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request went where an answer pointed") }))
			t.Cleanup(elsewhere.Close)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = append(got, strings.TrimPrefix(r.Header.Get(header), "Bearer "))
				if strings.Contains(r.URL.String(), secret) {
					t.Error("the key is in the address")
				}
				w.Header().Set("Location", elsewhere.URL)
				http.Error(w, `{"error":{"message":"the key `+got[len(got)-1]+` is wrong"}}`, []int{http.StatusUnauthorized, http.StatusTemporaryRedirect}[len(got)-1])
			}))
			t.Cleanup(s.Close)
			file := filepath.Join(t.TempDir(), "key")
			c := called(t, llm.Options{Format: f, URL: s.URL, KeyFile: file})
			if _, err := c.Call(t.Context(), ask(), nil); err == nil || !strings.Contains(err.Error(), "the model's key") {
				t.Errorf("without the file: %v", err)
			}
			for _, key := range []string{secret, secret + "-new"} {
				if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := c.Call(t.Context(), ask(), nil)
				if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "the key [the key] is wrong") {
					t.Errorf("%v", err)
				}
			}
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Call(t.Context(), ask(), nil); err == nil || !strings.Contains(err.Error(), "chmod 600 "+file) {
				t.Errorf("a key that every user can read: %v", err)
			}
			if diff := cmp.Diff([]string{secret, secret + "-new"}, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidOptionsAreErrors(t *testing.T) {
	key := func(context.Context) (string, error) { return "k", nil }
	for says, opt := range map[string]llm.Options{
		"unknown format":    {Format: "yaml", Model: "m"},
		"has no name":       {Format: render.OpenAI},
		"write https":       {Format: render.OpenAI, Model: "m", URL: "http://192.0.2.1:8000"},
		"plain HTTP URL":    {Format: render.Gemini, Model: "m", URL: "http://api.example.com", Key: key},
		`begins with "ftp"`: {Format: render.OpenAI, Model: "m", URL: "ftp://api.example.com"},
		"cannot be read":    {Format: render.OpenAI, Model: "m", URL: "api.example.com"},
		"has a password":    {Format: render.OpenAI, Model: "m", URL: "https://u:p@api.example.com"},
		"KeyFile and Key":   {Format: render.OpenAI, Model: "m", Key: key, KeyFile: "f"},
	} {
		if c, err := llm.New(opt); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v, %v", says, c, err)
		}
	}
	for _, f := range render.Formats() {
		if _, err := llm.New(llm.Options{Format: f, Model: "m", Key: key}); err != nil {
			t.Errorf("%s at its vendor: %v", f, err)
		}
	}
	bad := called(t, llm.Options{Format: render.OpenAI, URL: "http://localhost:1", Key: func(context.Context) (string, error) { return "a\nb", nil }})
	if _, err := bad.Call(t.Context(), ask(), nil); err == nil || !strings.Contains(err.Error(), "not a single line") {
		t.Errorf("a key of two lines: %v", err)
	}
	if _, err := bad.Call(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "has only system messages") {
		t.Errorf("no conversation: %v", err)
	}
}

// scripted returns a client of a model that answers with turns, in a bubble.
func scripted(t *testing.T, opt llm.Options, turns ...model.Turn) (*llm.Client, *model.Server) {
	t.Helper()
	m := model.Make(func(r model.Request) model.Turn { return turns[min(r.Nth, len(turns)-1)] })
	t.Cleanup(m.Close)
	opt.URL, opt.HTTP = m.URL, m.Client()
	if opt.Format == "" {
		opt.Format = render.OpenAI
	}
	return called(t, opt), m
}

// A temporary error is retried after the pause that the API asks for, and not earlier.
func TestTemporaryErrorsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := scripted(t, llm.Options{}, model.Turn{Status: 429, RetryAfter: "7"}, model.Turn{Status: 500}, model.Turn{Status: 529}, model.Turn{Status: 503,
			RetryAfter: time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)}, model.Turn{Text: "at last"})
		began := time.Now()
		messages, err := c.Call(t.Context(), ask(), nil)
		if err != nil || messages.Content != "at last" || len(m.Requests()) != 5 {
			t.Errorf("%+v, %v after %d requests", messages, err, len(m.Requests()))
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("it took %s; the last refusal has the pause", d)
		}
	})
}

// A permanent error is returned at once, and a temporary one after a limited number of
// attempts.
func TestErrorsAreReturnedAfterLimitedAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		asked int
		opt   llm.Options
		turn  model.Turn
	}{
		"a wrong request":   {`calling the model "m": the API answered 400 Bad Request: no such tool`, 1, llm.Options{}, model.Turn{Status: 400, Text: "no such tool"}},
		"always overloaded": {"answered 503 Service Unavailable: busy (after 5 attempts)", 5, llm.Options{}, model.Turn{Status: 503, Text: "busy"}},
		"no retries":        {"after 1 attempts", 1, llm.Options{Retries: -1}, model.Turn{Status: 503}},
		"a pause of a day":  {"too long", 1, llm.Options{}, model.Turn{Status: 429, RetryAfter: "86400"}},
		"junk":              {"", 1, llm.Options{}, model.Turn{Raw: "<html>"}},
		"an error in an OK": {"answered with an error: quota", 1, llm.Options{}, model.Turn{Raw: `{"error":{"message":"quota"}}`}},
		"junk as an error":  {"502 Bad Gateway: <html>", 3, llm.Options{Retries: 2}, model.Turn{Status: 502, Raw: "<html>"}},
		"a long error":      {"xxx…", 1, llm.Options{}, model.Turn{Status: 400, Text: strings.Repeat("x", 5000)}},
		"silence":           {"did not answer in time (after 3 attempts)", 3, llm.Options{Retries: 2, Timeout: time.Minute}, model.Turn{Hang: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, m := scripted(t, c.opt, c.turn)
				_, err := client.Call(t.Context(), ask(), nil)
				if err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 1500 || len(m.Requests()) != c.asked {
					t.Errorf("%v, after %d requests", err, len(m.Requests()))
				}
				if api, ok := errors.AsType[*llm.APIError](err); ok != (c.turn.Status != 0) || ok && api.Status != c.turn.Status {
					t.Errorf("%v is an API's error: %v", err, ok)
				}
			})
		})
	}
}

// The caller's context limits the call, and its cause is in the error.
func TestTheCallersContextLimitsTheCall(t *testing.T) {
	why := errors.New("the query was cancelled")
	for name, turn := range map[string]model.Turn{"while the model is silent": {Hang: true}, "during a pause": {Status: 429, RetryAfter: "60"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := scripted(t, llm.Options{}, turn)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(10*time.Second, func() { cancel(why) })
				began := time.Now()
				if _, err := c.Call(ctx, ask(), nil); !errors.Is(err, why) || time.Since(began) != 10*time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c, _ := scripted(t, llm.Options{}, model.Turn{Status: 429, RetryAfter: "60", Text: "slow down"})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.Call(ctx, ask(), nil); err == nil || !strings.Contains(err.Error(), "slow down") || time.Since(began) != 0 {
			t.Errorf("a pause for which there is no time: after %s: %v", time.Since(began), err)
		}
	})
}

// A refusal and a cut are errors of their own.
func TestRefusalsAndCutsAreErrors(t *testing.T) {
	for raw, want := range map[string]error{
		`{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"content_filter"}]}`: render.ErrRefused,
		`{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"length"}]}`:         render.ErrCut,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, m := scripted(t, llm.Options{}, model.Turn{Raw: raw})
			if _, err := c.Call(t.Context(), ask(), nil); !errors.Is(err, want) || len(m.Requests()) != 1 {
				t.Errorf("%v", err)
			}
		})
	}
}
