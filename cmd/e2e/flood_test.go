package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// soon is how long a freeze may take at most.
const soon = time.Second

// fewFreezes are made under each flood, or as many as there are in floodFor where tests may take long.
const (
	fewFreezes = 5
	floodFor   = 5 * time.Second
)

// TestAFloodDoesNotDelayAFreeze: the credentials of an agent or a host send as much as four
// connections can, of each kind of message that they may send.
func TestAFloodDoesNotDelayAFreeze(t *testing.T) {
	data := t.TempDir()
	operator := credentials(t, data, "init", "operator", "op")
	b := startBroker(t, "--data", data, "--config", write(t, data, "hooks.yaml",
		"hooks:\n  PreToolUse:\n    - {name: guard, type: builtin, handler: path_permission, options: {deny: [/srv/secret]}, fail_closed: true}\n"))
	event := func(agent, tool, input string) *nats.Msg {
		r := schema.Routing{Event: schema.PreToolUse, Agent: agent, Session: "s", ID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182", Tool: tool}
		return bus.EventMsg("hook.v1.event."+agent+".PreToolUse", r, 1, 30*time.Second, nil, fmt.Appendf(nil, `{"hook_type":"PreToolUse","tool_name":%q,"tool_input":%s}`, tool, input))
	}
	for agent, f := range map[string]struct {
		name string
		like *nats.Msg
	}{
		"quiet":   {"of nothing", nil},
		"fetcher": {"of fetch requests", &nats.Msg{Subject: "hook.v1.ctl.fetch.fetcher", Data: []byte(`{"digest":"sha256-00","session":"s"}`)}},
		"author":  {"of answers", &nats.Msg{Subject: "hook.v1.ctl.answer.author", Data: []byte(`{"session":"s","content":"x"}`)}},
		"reader":  {"of policy requests", &nats.Msg{Subject: "hook.v1.ctl.policy._"}},
		"wild":    {"of events", event("wild", "Bash", `{"command":"ls"}`)},
		"large":   {"of large shell commands", event("large", "Bash", `{"command":"`+strings.Repeat("ls a/b; ", 1<<17)+`"}`)},
		"paths":   {"of events with many paths", event("paths", "read_many_files", `{"paths":["`+strings.Repeat(`a","`, 1<<18)+`b"]}`)},
		"hosted":  {"of events of a host", event("hosted", "Bash", `{"command":"ls"}`)},
	} {
		role, agents := "agent", []string(nil)
		if agent == "hosted" {
			role, agents = "host", []string{"--agents", agent}
		}
		creds := credentials(t, data, "", role, agent, agents...)
		t.Run(f.name, func(t *testing.T) {
			nc, err := bus.Connect(t.Context(), bus.Options{URL: b.url, Creds: operator})
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			ctx, stop := context.WithCancel(t.Context())
			var floods, begun sync.WaitGroup
			defer floods.Wait()
			defer stop()
			for range 4 {
				if f.like == nil {
					break
				}
				begun.Add(1)
				floods.Go(func() { flood(ctx, t, flooding{b.url, creds, f.like, begun.Done}) })
			}
			begun.Wait()
			if agent == "reader" {
				limited(t, nc, agent)
			}
			var took []time.Duration
			for began := time.Now(); len(took) < 2*fewFreezes || long() && time.Since(began) < floodFor; {
				for _, verb := range []string{schema.VerbFreeze, schema.VerbThaw} {
					took = append(took, freezes(t, nc, verb, fmt.Sprint("other-", len(took)/2)))
				}
			}
			slices.Sort(took)
			t.Logf("%d freezes and thaws took %v at the median and %v at most", len(took), took[len(took)/2], took[len(took)-1])
		})
	}
}

// credentials makes credentials with more flags, and the realm first if init names the command for that.
func credentials(t *testing.T, data, init, role, name string, more ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".creds")
	all := [][]string{append([]string{"add", role, name, "--out", file}, more...)}
	if init != "" {
		all = append([][]string{{init}}, all...)
	}
	for _, args := range all {
		p := start(t, "broker", append(append([]string{"creds"}, args...), "--data", data)...)
		if code, err := p.wait(); code != 0 || err != nil {
			t.Fatalf("creds %v ended with %d, %v:\n%s", args, code, err, p.said)
		}
	}
	return file
}

// flooding describes a client that floods a broker. begun is called when it has sent many messages.
type flooding struct {
	url, creds string
	like       *nats.Msg
	begun      func()
}

// floodBytes is how many bytes a second each of four connections sends at most: a server cuts off
// credentials that send 64 MiB.
const floodBytes = 15 << 20

// flood sends one message again and again, until ctx ends: small ones as fast as it can, and
// large ones as fast as the server takes them of an agent.
func flood(ctx context.Context, t *testing.T, f flooding) {
	nc, err := bus.Connect(ctx, bus.Options{URL: f.url, Creds: f.creds, Retry: true})
	if err != nil {
		t.Error(err)
		f.begun()
		return
	}
	defer nc.Close()
	m := *f.like
	m.Reply = nc.NewInbox()
	large, much := len(m.Data) > floodBytes/100, min(50_000, 2*floodBytes/(len(m.Data)+1))
	tick := time.NewTicker(time.Second * time.Duration(len(m.Data)+1) / floodBytes)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		if large {
			<-tick.C
		}
		_ = nc.PublishMsg(&m) // what the server does not take is as good
		if i == much {
			f.begun()
		}
	}
}

// limited waits until the status names an agent that makes too many control requests.
func limited(t *testing.T, nc *nats.Conn, agent string) {
	t.Helper()
	err := eventually("the status names "+agent, func() bool {
		m, err := nc.Request("hook.v1.ctl.status._", []byte(`{}`), patience)
		var st schema.FabricStatus
		if err != nil || schema.Unmarshal(m.Data, &st) != nil {
			return false
		}
		return slices.ContainsFunc(st.Limited, func(l schema.LimitedStatus) bool { return l.Name == agent && l.Limit == "requests" })
	})
	if err != nil {
		t.Error(err)
	}
}

// freezes freezes or thaws agents, in time.
func freezes(t *testing.T, nc *nats.Conn, verb, agents string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	var a schema.FreezeAnswer
	if err := bus.Ask(ctx, nc, "hook.v1.ctl."+verb+"._", schema.FreezeRequest{Agents: agents}, &a); err != nil || len(a.Missing) > 0 {
		t.Errorf("%s after %v: %v, missing %v", verb, time.Since(began), err, a.Missing)
	}
	// The flood and the broker share this machine's processors with other tests, unless these
	// run alone.
	if took := time.Since(began); long() && took > soon {
		t.Errorf("%s took %v", verb, took)
	}
	return time.Since(began)
}
