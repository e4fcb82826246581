package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state"
	"pgregory.net/rapid"
)

// A model holds the expected versions, independent of their storage.
type model struct {
	active   uint64
	names    map[uint64]string // of all versions that were ever proposed
	kept     []uint64          // newest first
	proposed uint64
}

// propose returns the expected result of a proposal.
func (m *model) propose(name string, p state.Proposal) (same bool, err error) {
	switch {
	case m.active > 0 && m.names[m.active] == name:
		return true, nil
	case p.Base > 0 && p.Base != m.active:
		return false, state.ErrMoved
	case m.proposed > 0 && p.Over != m.proposed:
		return false, &state.Busy{Version: m.proposed, By: m.names[m.proposed]}
	}
	return false, nil
}

func (m *model) activate(version uint64) error {
	if slices.Contains(m.kept, version) {
		return nil
	}
	if version == 0 || version != m.proposed {
		return state.ErrMoved
	}
	m.active, m.proposed = version, 0
	m.kept = slices.Insert(m.kept, 0, version)
	m.kept = m.kept[:min(len(m.kept), state.HistoryConfigs)]
	return nil
}

// The test compares random sequences of calls, and the bucket after each, with the model.
func TestVersionsMatchTheModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, err := server.Start(t.Context(), server.Options{Dir: t.TempDir(), SyncInterval: time.Minute})
		if err != nil {
			r.Fatal(err)
		}
		js := bustest.JetStream(t, s)
		defer func() {
			js.Conn().Close()
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		run := modelRun{t: t, configs: open(t, js), model: model{names: map[uint64]string{}}}
		r.Repeat(map[string]func(*rapid.T){
			"propose": run.propose, "activate": run.activate, "withdraw": run.withdraw, "": run.check,
		})
	})
}

type modelRun struct {
	t       *testing.T
	configs *state.Configs
	model   model
}

// version draws a number, mostly of a version that exists or existed.
func (run *modelRun) version(r *rapid.T, label string) uint64 {
	return rapid.OneOf(rapid.Just(run.model.proposed), rapid.Just(run.model.active), rapid.Uint64Range(0, uint64(len(run.model.names))+2)).Draw(r, label)
}

func (run *modelRun) propose(r *rapid.T) {
	name := fmt.Sprint("c", rapid.IntRange(0, 3).Draw(r, "name"))
	p := state.Proposal{By: name, Base: run.version(r, "base"), Over: run.version(r, "over")}
	wantSame, wantErr := run.model.propose(name, p)
	v, same, err := run.configs.Propose(run.t.Context(), config(name), p)
	busy, _ := errors.AsType[*state.Busy](err)
	if wantBusy, ok := errors.AsType[*state.Busy](wantErr); ok && (busy == nil || *busy != *wantBusy) || !ok && !errors.Is(err, wantErr) || same != wantSame {
		r.Fatalf("Propose(%s, %+v) = %d, %v, %v; want %v, %v", name, p, v, same, err, wantSame, wantErr)
	}
	switch {
	case same && v != run.model.active:
		r.Fatalf("Propose(%s) = %d, but %d is active", name, v, run.model.active)
	case err != nil || same:
		return
	}
	for older := range run.model.names {
		if older >= v {
			r.Fatalf("version %d follows %d", v, older)
		}
	}
	run.model.names[v], run.model.proposed = name, v
}

func (run *modelRun) activate(r *rapid.T) {
	v := run.version(r, "version")
	want := run.model.activate(v)
	if err := run.configs.Activate(run.t.Context(), v); !errors.Is(err, want) {
		r.Fatalf("Activate(%d) = %v; want %v", v, err, want)
	}
}

func (run *modelRun) withdraw(r *rapid.T) {
	v := run.version(r, "version")
	if v == run.model.proposed {
		run.model.proposed = 0
	}
	if err := run.configs.Withdraw(run.t.Context(), v); err != nil {
		r.Fatal(err)
	}
}

// check compares all visible state with the model.
func (run *modelRun) check(r *rapid.T) {
	m := run.model
	current, err := run.configs.Current(run.t.Context())
	if err != nil || current.Version != m.active {
		r.Fatalf("version %d is active, %v; want %d", current.Version, err, m.active)
	}
	infos, err := run.configs.Versions(run.t.Context())
	if err != nil || len(infos) != len(m.kept) {
		r.Fatalf("kept are %+v, %v; want %v", infos, err, m.kept)
	}
	for i, v := range m.kept {
		if infos[i].Version != v || infos[i].By != m.names[v] {
			r.Fatalf("kept are %+v; want %v", infos, m.kept)
		}
	}
	for v, name := range m.names {
		cfg, err := run.configs.Get(run.t.Context(), v)
		if there := v == m.proposed || slices.Contains(m.kept, v); there != (err == nil) || there && cfg.Hooks[0].Name != name {
			r.Fatalf("version %d, %s: %v; is it there: %v", v, name, err, there)
		}
	}
}
