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

// A fixedAsker gives the same verdict before each call, and replaces each output.
type fixedAsker schema.Verdict

func (v *fixedAsker) Ask(_ context.Context, q decide.Question) decide.Judgement {
	if q.Event.HookType != schema.PreToolUse {
		return decide.Judgement{Verdict: &schema.Verdict{Decision: schema.Continue, UpdatedOutput: []byte(`"[redacted]"`)}}
	}
	before := schema.Verdict(*v)
	return decide.Judgement{Verdict: &before}
}

func (*fixedAsker) Handed(context.Context, *schema.Verdict, time.Duration) {}

// newTestConn returns a conn whose client and server are two buffers.
func newTestConn(a decide.Asker) (c *conn, client, server *bytes.Buffer) {
	client, server = &bytes.Buffer{}, &bytes.Buffer{}
	p := Pipe{Guard: &Guard{Asker: a, Agent: "a", Server: "srv", Stderr: io.Discard}, ToClient: client}
	return newConn(context.Background(), &p, server, func(error) {}), client, server
}

// A lenientMessage is a message as lenient readers read it.
type lenientMessage struct {
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

// readLeniently returns all messages that a lenient reader finds.
func readLeniently(text []byte) (all []lenientMessage) {
	for line := range bytes.Lines(text) {
		for part := range bytes.SplitSeq(line, []byte("\r")) {
			var one lenientMessage
			options := json.JoinOptions(json.MatchCaseInsensitiveNames(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
			if values, err := readList(bytes.TrimSpace(part)); err == nil {
				for _, v := range values {
					all = append(all, readLeniently(v)...)
				}
			} else if json.Unmarshal(part, &one, options) == nil {
				all = append(all, one)
			}
		}
	}
	return all
}

// recordedLines returns recorded lines of a client (c2s) or a server (s2c).
func recordedLines(f *testing.F, who string) (lines []string) {
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

// FuzzClientLines checks that a line passes unchanged or not at all, that no denied call
// passes, and that every reader finds the new arguments in a rewritten call.
func FuzzClientLines(f *testing.F) {
	for _, line := range append(recordedLines(f, "c2s"), aCall, "["+aCall+","+aCall+"]", "", "x", "{\"id\":1,\r\"METHOD\":\"tools/call\"}", `{"id":1,"Met-hod":"tools/call"}`,
		strings.Replace(aCall, `"arguments"`, `"arguments":{},"Arguments"`, 1), strings.Replace(aCall, `"method"`, `"method":"x","method"`, 1)) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line := append(bytes.ReplaceAll(text, []byte("\n"), nil), '\n')
		forward := func(v fixedAsker) []byte {
			c, _, server := newTestConn(&v)
			c.handleClient(line)
			c.ruling.Wait()
			return server.Bytes()
		}
		read, _ := readFrame(line)
		ambiguous := slices.ContainsFunc(read.messages, func(m message) bool { return m.ambiguity != nil }) // the proxy takes it out of a list
		if got := forward(fixedAsker{Decision: schema.Continue}); len(got) > 0 && !bytes.Equal(got, line) && !ambiguous {
			t.Errorf("no hook objects, but the server gets\n%q instead of\n%q", got, line)
		}
		for _, m := range readLeniently(forward(fixedAsker{Decision: schema.Deny})) {
			if m.Method == methodCall {
				t.Errorf("a denied call reaches the server: %q", line)
			}
		}
		for _, m := range readLeniently(forward(fixedAsker{Decision: schema.Continue, UpdatedInput: []byte(`{"safe":1}`)})) {
			if m.Method == methodCall && string(m.Params.Arguments) != `{"safe":1}` {
				t.Errorf("a rewritten call has the arguments %s: %q", m.Params.Arguments, line)
			}
		}
	})
}

// FuzzServerLines checks that a line that answers no call passes unchanged or not at all, and
// that no reader finds another output in an answer than the output of the hook.
func FuzzServerLines(f *testing.F) {
	for _, line := range append(recordedLines(f, "s2c"), "x", `{"id":1,"result":{"content":[{"type":"text","text":"s"}]}}`, `{"id":"1","result":{"content":[1]},"error":null}`,
		`[{"id":1,"result":{"structuredContent":{}}},{"id":2,"result":{}}]`, `{"id":1,"result":{"task":{},"resultType":"x","content":[1]}}`,
		`{"id":1,"resul_t":{"content":[]}}`) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line := append(bytes.ReplaceAll(text, []byte("\n"), nil), '\n')
		c, client, _ := newTestConn(&fixedAsker{})
		c.handleServer(line)
		c.judging.Wait()
		if got := client.Bytes(); len(got) > 0 && !bytes.Equal(got, line) && bytes.IndexByte(bytes.TrimSpace(line), '\r') < 0 && !bytes.Contains(got, []byte("agentshim dropped")) {
			t.Errorf("there are no calls, but the client gets\n%q instead of\n%q", got, line)
		}
		c, client, server := newTestConn(&fixedAsker{Decision: schema.Continue})
		c.handleClient([]byte(aCall + "\n"))
		c.ruling.Wait()
		if server.Len() == 0 {
			t.Fatal("the call did not reach the server")
		}
		c.handleServer(line)
		c.judging.Wait()
		for _, m := range readLeniently(client.Bytes()) {
			if looseKey(m.ID) != "n1" || len(m.Result.Content) == 0 && len(m.Result.Structured) == 0 {
				continue
			}
			if content := string(m.Result.Content); !strings.Contains(content, "[redacted]") && !strings.Contains(content, "agentshim dropped") || len(m.Result.Structured) > 0 {
				t.Errorf("a reader finds %s and %s in %q", content, m.Result.Structured, line)
			}
			break // clients take the first answer
		}
	})
}
