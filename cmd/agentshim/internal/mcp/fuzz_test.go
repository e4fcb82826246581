package mcp

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// A verdict is what somebody always says before a call; after it, the output is
// taken out.
type verdict schema.Verdict

func (v *verdict) Ask(_ context.Context, q decide.Question) decide.Judgement {
	if q.Event.HookType != schema.PreToolUse {
		return decide.Judgement{Verdict: &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)}}
	}
	said := schema.Verdict(*v)
	return decide.Judgement{Verdict: &said}
}

func (*verdict) Handed(context.Context, *schema.Verdict, time.Duration) {}

// between is a proxy whose ends are two buffers.
func between(a Asker) (c *conn, client, server *bytes.Buffer) {
	client, server = &bytes.Buffer{}, &bytes.Buffer{}
	p := Pipe{Guard: &Guard{Asker: a, Agent: "a", Server: "srv", Stderr: io.Discard}, ToClient: client}
	return newConn(context.Background(), &p, server, func(error) {}), client, server
}

// A lax message is one as readers read it that take what they can get.
type lax struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Params struct {
		Arguments jsontext.Value `json:"arguments"`
	} `json:"params"`
	Result struct {
		Content    jsontext.Value `json:"content"`
		Structured jsontext.Value `json:"structuredContent"`
		IsError    bool           `json:"isError"`
	} `json:"result"`
}

// laxly reads all messages there are.
func laxly(text []byte) (all []lax) {
	for line := range bytes.Lines(text) {
		for part := range bytes.SplitSeq(line, []byte("\r")) {
			var one lax
			options := json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
			if values, err := readList(bytes.TrimSpace(part)); err == nil {
				for _, v := range values {
					all = append(all, laxly(v)...)
				}
			} else if json.Unmarshal(part, &one, options) == nil {
				all = append(all, one)
			}
		}
	}
	return all
}

// frames are recorded lines of clients or servers.
func frames(f *testing.F, who string) (lines []string) {
	a, err := txtar.ParseFile(filepath.Join("testdata", "everything.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(a.Files[0].Data)) {
		if text, ok := strings.CutPrefix(line, who+" "); ok {
			lines = append(lines, strings.TrimSuffix(text, "\n"))
		}
	}
	return lines
}

// FuzzWhatClientsSay holds that a line passes as the bytes that it is or not at
// all, that no call passes which is denied, and that a rewritten one is that to
// every reader.
func FuzzWhatClientsSay(f *testing.F) {
	for _, line := range append(frames(f, "c2s"), aCall, "["+aCall+","+aCall+"]", "", "x", "{\"id\":1,\r\"METHOD\":\"tools/call\"}", `{"id":1,"Met-hod":"tools/call"}`,
		strings.Replace(aCall, `"arguments"`, `"arguments":{},"Arguments"`, 1), strings.Replace(aCall, `"method"`, `"method":"x","method"`, 1)) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line := append(bytes.ReplaceAll(text, []byte("\n"), nil), '\n')
		say := func(v verdict) []byte {
			c, _, server := between(&v)
			c.heard(line)
			c.asking.Wait()
			return server.Bytes()
		}
		all, _, _ := readMessages(line)
		unclear := slices.ContainsFunc(all, func(m message) bool { return m.unclear != nil }) // which is taken out of a list
		if got := say(verdict{Decision: schema.Continue}); len(got) > 0 && !bytes.Equal(got, line) && !unclear {
			t.Errorf("nobody minds it, and the server gets\n%q in the place of\n%q", got, line)
		}
		for _, m := range laxly(say(verdict{Decision: schema.Deny})) {
			if m.Method == methodCall {
				t.Errorf("a denied call reaches the server: %q", line)
			}
		}
		for _, m := range laxly(say(verdict{Decision: schema.Continue, UpdatedInput: []byte(`{"safe":1}`)})) {
			if m.Method == methodCall && string(m.Params.Arguments) != `{"safe":1}` {
				t.Errorf("a rewritten call has the arguments %s: %q", m.Params.Arguments, line)
			}
		}
	})
}

// FuzzWhatServersSay holds that what is no answer to a call passes as the bytes
// that it is or not at all, and that no reader finds another output in an answer
// than the one that hooks put there.
func FuzzWhatServersSay(f *testing.F) {
	for _, line := range append(frames(f, "s2c"), "x", `{"id":1,"result":{"content":[{"type":"text","text":"s"}]}}`, `{"id":"1","result":{"content":[1]},"error":null}`,
		`[{"id":1,"result":{"structuredContent":{}}},{"id":2,"result":{}}]`, `{"id":1,"result":{"task":{},"resultType":"x","content":[1]}}`,
		`{"id":1,"resul_t":{"content":[]}}`) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line := append(bytes.ReplaceAll(text, []byte("\n"), nil), '\n')
		c, client, _ := between(&verdict{})
		c.said(line)
		c.looking.Wait()
		if got := client.Bytes(); len(got) > 0 && !bytes.Equal(got, line) && bytes.IndexByte(bytes.TrimSpace(line), '\r') < 0 && !bytes.Contains(got, []byte("agentshim dropped")) {
			t.Errorf("there are no calls, and the client gets\n%q in the place of\n%q", got, line)
		}
		c, client, server := between(&verdict{Decision: schema.Continue})
		c.heard([]byte(aCall + "\n"))
		c.asking.Wait()
		if server.Len() == 0 {
			t.Fatal("the call did not reach the server")
		}
		c.said(line)
		c.looking.Wait()
		for _, m := range laxly(client.Bytes()) {
			if place(m.ID) != "n1" || len(m.Result.Content) == 0 && len(m.Result.Structured) == 0 {
				continue
			}
			if said := string(m.Result.Content); !strings.Contains(said, "[redacted]") && !strings.Contains(said, "agentshim dropped") || len(m.Result.Structured) > 0 {
				t.Errorf("a reader finds %s and %s in %q", said, m.Result.Structured, line)
			}
			break // clients take the first answer
		}
	})
}
