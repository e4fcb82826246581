package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/schema"
)

// TestTheDoctorSaysWhichCredentialsItNeeds checks that an agent's credentials are enough to see that a
// broker answers agents, and that the report names missing credentials.
func TestTheDoctorSaysWhichCredentialsItNeeds(t *testing.T) {
	t.Setenv("HOOKFABRIC_AGENT", "")
	dir := filepath.Join(t.TempDir(), "auth")
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: dir})
	files := map[string]string{"": ""}
	for name, g := range map[string]access.Grant{
		"host":  {Role: access.Host, Agents: []string{access.Everyone}},
		"hosts": {Role: access.Host, Agents: []string{"doctor", "b"}},
		"agent": {Role: access.Agent, Agents: []string{"a"}},
		"ops":   {Role: access.Operator},
		"all":   {Role: access.Broker},
	} {
		file := filepath.Join(t.TempDir(), name+".creds")
		_, err := realm.Add(t.Context(), dir, realm.Issue{Name: name, Grant: g}, func(creds []byte) error { return os.WriteFile(file, creds, 0o600) })
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
		if may := bus.MayAsk(file, Agent); may != (name != "agent") {
			t.Errorf("with those of %s the doctor may try calls: %v", name, may)
		}
	}
	for agent, says := range map[string]string{"": "name no agent", "b": `not for the agent "b"`, "a": ""} {
		words := []string{"/opt/agentshim", "hook", "--creds", files["agent"]}
		if agent != "" {
			words = append(words, "--agent", agent)
		}
		r := &Runtime{Runtime: "codex", Layers: []Layer{{Scope: install.User, Events: []string{"PreToolUse"},
			found: install.Found{Hooks: []install.Owned{{Event: "PreToolUse", Command: words}}}}}}
		r.try(t.Context(), &Options{State: t.TempDir()}, &fabric{})
		if all := strings.Join(r.Problems, "\n"); r.Canary != nil || (all == "") != (says == "") || !strings.Contains(all, says) {
			t.Errorf("with credentials of a and the agent %q: problems %q", agent, all)
		}
	}
	if err := Answers(t.Context(), Options{NATS: s.ClientURL(), Creds: files["agent"]}); err == nil || !strings.Contains(err.Error(), "NATS answers, but no broker") {
		t.Errorf("a broker answers that does not run: %v", err)
	}
	examine := func(who string) Bus {
		return Examine(t.Context(), Options{Machine: machine(t, nil), NATS: s.ClientURL(), Creds: files[who], Named: true, State: t.TempDir()}).Bus
	}
	if b := examine(""); b.Reached || !strings.Contains(b.Why, "create a file with `broker creds add operator NAME`") {
		t.Errorf("without credentials: %+v", b)
	}
	if b := examine("agent"); b.Reached || !strings.Contains(b.Why, "NATS answers, but no broker") {
		t.Errorf("without a broker: %+v", b)
	}
	policy(t, s.ClientURL(), files["all"])
	for _, who := range []string{"host", "agent"} {
		if err := Answers(t.Context(), Options{NATS: s.ClientURL(), Creds: files[who]}); err != nil {
			t.Errorf("with those of %s: %v", who, err)
		}
		if b := examine(who); !b.Reached || b.Fabric != "f" || b.ConfigVersion != 7 || !strings.Contains(b.Hidden, "create an operator's credentials with 'broker creds add operator NAME'") {
			t.Errorf("with those of %s: %+v", who, b)
		}
	}
}

// policy answers requests for the policy as a broker does.
func policy(t *testing.T, url, creds string) {
	nc, err := bus.Connect(t.Context(), bus.Options{URL: url, Creds: creds, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	answer, err := schema.Marshal(schema.PolicyAnswer{Document: `{"fabric":"f","config_version":7,"hooks":[]}`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Subscribe("hook.v1.ctl.policy._", func(m *nats.Msg) { _ = m.Respond(answer) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestAShimThatDecidesAloneSaysSo checks the words by which the doctor recognises a call that the fabric
// did not judge.
func TestAShimThatDecidesAloneSaysSo(t *testing.T) {
	var said bytes.Buffer
	j := decide.New(decide.Link{URL: "nats://127.0.0.1:1", Stderr: &said})
	defer j.Close()
	j.Ask(t.Context(), decide.Question{Event: &schema.Event{AgentID: "a", SessionID: "s", HookType: schema.PreToolUse}, Unreachable: decide.UnreachableAllow})
	if !strings.Contains(said.String(), aloneMark) {
		t.Errorf("it says %q", said.String())
	}
}

// TestTheFabricIsTheOneThatHooksAsk checks that the doctor takes a fabric that the user did not name from
// the hooks of the machine, but never from those of a project.
func TestTheFabricIsTheOneThatHooksAsk(t *testing.T) {
	hook := func(s install.Scope, words ...string) *Runtime {
		return &Runtime{Layers: []Layer{{Scope: s, found: install.Found{Hooks: []install.Owned{{Command: append([]string{"agentshim", "hook"}, words...)}}}}}}
	}
	const usual = "nats://127.0.0.1:4222"
	here := &Daemon{Running: true, NATS: "nats://daemon:4222"}
	for name, test := range map[string]struct {
		named       bool
		hook        *Runtime
		daemon      *Daemon
		nats, creds string
	}{
		"nothing says where":         {false, hook(install.User), &Daemon{}, usual, ""},
		"the daemon":                 {false, hook(install.User), here, here.NATS, ""},
		"a daemon with a password":   {false, hook(install.User), &Daemon{Running: true, NATS: "nats://***@daemon:4222"}, usual, ""},
		"a hook":                     {false, hook(install.User, "--nats", "nats://b:4222", "--creds=/x"), here, "nats://b:4222", "/x"},
		"a hook, and it was named":   {true, hook(install.User, "--nats", "nats://b:4222", "--creds=/x"), here, usual, ""},
		"a project's, of a stranger": {false, hook(install.Project, "--nats", "nats://evil:4222"), &Daemon{}, usual, ""},
	} {
		o := Options{NATS: usual, Named: test.named}
		o.adopt([]*Runtime{test.hook}, test.daemon)
		if o.NATS != test.nats || o.Creds != test.creds {
			t.Errorf("%s: %s with %q", name, o.NATS, o.Creds)
		}
	}
}
