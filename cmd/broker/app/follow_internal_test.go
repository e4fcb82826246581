package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

func TestOnlyTheNewestTurnReports(t *testing.T) {
	var l latest
	said := ""
	first := l.next()
	first(func() { said += "1" })
	second := l.next()
	first(func() { said += "late" })
	second(func() { said += "2" })
	if said != "12" {
		t.Error(said)
	}
}

// newerRelease stores a version in dir that this release cannot use.
func newerRelease(t *testing.T, dir string) {
	t.Helper()
	server, err := server.Start(t.Context(), server.Options{Dir: dir, SyncInterval: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	nc, err := server.Connect(t.Context(), bus.Options{Name: "newer"})
	must(t, err)
	js, err := jetstream.New(nc)
	must(t, err)
	configs, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
	must(t, err)
	hook := schema.Hook{
		Name: "h", Event: schema.PreToolUse, Type: schema.Builtin, Handler: "allow", Timeout: schema.DefaultTimeout,
		Pool: schema.DefaultPool, When: "of_a_newer_release(tool)",
	}
	version, _, err := configs.Propose(t.Context(), schema.Config{Hooks: []schema.Hook{hook}}, state.Proposal{})
	must(t, err)
	must(t, configs.Activate(t.Context(), version))
	nc.Close()
	must(t, server.Close(t.Context()))
}

func TestAFileReplacesAnUnusableVersion(t *testing.T) {
	dir := t.TempDir()
	newerRelease(t, filepath.Join(dir, "data"))
	file := filepath.Join(dir, "hooks.yaml")
	must(t, os.WriteFile(file, []byte("hooks: {}\n"), 0o600))
	opt := Options{Data: filepath.Join(dir, "data"), Sync: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	if b, err := New(t.Context(), opt); err == nil {
		t.Error("without a file the broker starts")
		must(t, b.Close(t.Context()))
	}
	opt.Config = file
	b, err := New(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if st := b.Status(); st.ConfigVersion != 2 || !st.Ready {
		t.Errorf("%+v", st)
	}
	must(t, b.Close(t.Context()))
}

func TestANodeThatCannotLoadAHookIsNamedOnce(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	first, err := New(t.Context(), Options{Data: dir, Listen: "127.0.0.1:0", Sync: time.Minute, Logger: log})
	must(t, err)
	second, err := New(t.Context(), Options{NATS: first.URL(), Logger: log})
	must(t, err)
	answer, err := first.agg.Apply(t.Context(), &control.File{Name: "f", Text: "hooks: {PreToolUse: [{type: builtin, handler: missing}]}\n"})
	if err != nil || !answer.Refused || len(answer.Problems) != 2 || answer.Problems[0].Node == answer.Problems[1].Node {
		t.Errorf("%+v, %v", answer, err)
	}
	must(t, second.Close(t.Context()))
	must(t, first.Close(t.Context()))
}
