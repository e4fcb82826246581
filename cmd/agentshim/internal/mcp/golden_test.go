package mcp_test

import (
	"bufio"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
	"github.com/hookfabric/hookfabric/schema"
)

var update = flag.Bool("update", false, "write what the proxy makes of recorded frames into testdata")

// The first sections of a file are messages of released clients. `go test -update` writes what the
// proxy makes of them into the other sections.
func TestRecordedCalls(t *testing.T) {
	for _, runtime := range []string{"claude", "codex", "gemini"} {
		t.Run(runtime, func(t *testing.T) {
			path := filepath.Join("testdata", runtime+".txtar")
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			recorded := map[string]string{}
			a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool {
				recorded[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
				return !slices.Contains([]string{"initialize", "call", "result"}, f.Name)
			})
			if recorded["result"] == "" { // some recordings have none
				recorded["result"] = result("2")
			}
			for _, section := range play(t, recorded["initialize"], recorded["call"], recorded["result"]) {
				name, data := section[0], section[1]
				a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(data + "\n")})
				if diff := cmp.Diff(recorded[name], data); diff != "" && !*update {
					t.Errorf("%s: recorded (-), now (+):\n%s", name, diff)
				}
			}
			if !*update {
				return
			}
			if err := os.WriteFile(path, txtar.Format(a), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// play returns what hooks see of a call, and what client and server get.
func play(t *testing.T, initialize, call, result string) (sections [][2]string) {
	t.Helper()
	var now *schema.Verdict
	f := &fabric{verdict: func(_ context.Context, q decide.Question) *schema.Verdict {
		if q.Event.HookType == schema.PostToolUse {
			return &schema.Verdict{Decision: schema.Continue, Injections: []schema.Injection{{Content: "mind the gap"}}}
		}
		return now
	}}
	r := newRig(t, f, func(p *mcp.Pipe) { p.Guard.Agent = "" })
	r.client.send(initialize)
	r.server.want(initialize)
	add := func(name, data string) { sections = append(sections, [2]string{name, data}) }

	now = &schema.Verdict{Decision: schema.Continue, UpdatedInput: []byte(`{"message":"rewritten"}`)}
	r.client.send(call)
	add("rewritten", r.server.next())
	r.server.send(result)
	add("told", r.client.next())
	for i, e := range r.questions() {
		session := e.SessionID
		if !strings.Contains(call, session) { // the proxy generates one for each connection
			e.SessionID, e.AgentID = "SESSION", strings.ReplaceAll(e.AgentID, session, "SESSION")
		}
		e.Timestamp = time.Time{}
		data, err := schema.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		add([]string{"before", "after"}[i], string(data))
	}
	now = &schema.Verdict{Decision: schema.Deny, Reason: "not today"}
	r.client.send(call)
	add("denied", r.client.next())
	return sections
}

// If no hook changes anything, all lines of a session pass unchanged.
func TestRecordedSessionPassesUnchanged(t *testing.T) {
	a, err := txtar.ParseFile(filepath.Join("testdata", "everything.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, &fabric{})
	n := 0
	in := bufio.NewScanner(strings.NewReader(string(a.Files[0].Data)))
	for in.Scan() {
		n++
		who, text, _ := strings.Cut(in.Text(), " ")
		if who == "c2s" {
			r.client.send(text)
			r.server.want(text)
		} else {
			r.server.send(text)
			r.client.want(text)
		}
	}
	if asked := len(r.questions()); n != 8 || asked != 2 || in.Err() != nil {
		t.Errorf("%d lines, %d questions, %v", n, asked, in.Err())
	}
}
