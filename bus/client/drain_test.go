package client_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

func TestDrainReturnsAllItemsAsOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		s := newStore(t, client.Options{Workspaces: folder})
		w := s.space("agent2", "text")
		s.Put(bustest.Item(1, "one"), bustest.Item(2, "see "+w.Path))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d, err := s.client.Drain(ctx, "agent/1", "s 1")
		want := "one\n\nsee " + filepath.Join(folder, "temp_workspaces", "agent2")
		if err != nil || d.Content != want || s.Drains[0].Session != "s 1" {
			t.Fatalf("%+v, %v", d, err)
		}
		if err := s.client.Ack(ctx, "agent/1", d.EventID); err != nil || len(s.Items) != 0 {
			t.Errorf("%v, still waiting: %v", err, s.Items)
		}
		if d, err := s.client.Drain(ctx, "agent/1", ""); err != nil || d.Content != "" {
			t.Errorf("when nothing waits: %+v, %v", d, err)
		}
	})
}

func TestDrainRemovesDeliveredItemsAndFetchesTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		in := bustest.Item(3, "")
		in.Object = s.Object("large")
		s.Put(bustest.Item(1, "one"), bustest.Item(2, "two"), in)
		s.client.Recall(client.Handover{Fabric: theFabric, Agent: "agent/1", Sequences: []uint64{1}})
		d, err := s.client.Drain(t.Context(), "agent/1", "")
		if err != nil || d.Content != "two\n\nlarge" || len(d.Injections) != 2 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func TestADrainReturnsTheTextOfARestart(t *testing.T) {
	for name, items := range map[string][]schema.Injection{"alone": nil, "with others": {bustest.Item(1, "one")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				folder := t.TempDir()
				s := newStore(t, client.Options{Workspaces: folder})
				w := s.space("agent2", "text")
				s.Restart = &schema.Restart{Content: "agent2 answered, see " + w.Path}
				s.Put(items...)
				d, err := s.client.Drain(t.Context(), "agent/1", "")
				want := "agent2 answered, see " + filepath.Join(folder, "temp_workspaces", "agent2")
				if len(items) > 0 {
					want += "\n\none"
				}
				if err != nil || d.Content != want {
					t.Fatalf("%+v, %v", d, err)
				}
				if h, ok := s.client.Brought(d.EventID); !ok || len(h.Events) != 1 {
					t.Errorf("it would not be acknowledged: %+v", h)
				}
			})
		})
	}
}

func TestADrainWithALostAnswerReturnsTheSameItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(bustest.Item(1, "one"))
		lost := 1
		s.answers(func(_ string, m *nats.Msg) bool {
			if lost == 0 {
				return false
			}
			lost--
			var r schema.DrainRequest
			if err := schema.Unmarshal(m.Data, &r); err != nil {
				t.Error(err)
			}
			s.Drains = append(s.Drains, r)
			s.Drain(r.EventID)
			return true
		})
		d, err := s.client.Drain(t.Context(), "agent/1", "")
		if err != nil || d.Content != "one" || len(s.Drains) != 2 || s.Drains[0] != s.Drains[1] {
			t.Errorf("%+v, %v, asked: %+v", d, err, s.Drains)
		}
	})
}

// A drain is repeated at another broker if the first one hangs, but a slow answer still
// counts.
func TestADrainIsSentToAnotherBrokerSoon(t *testing.T) {
	for name, c := range map[string]struct {
		answered int // of the requests
		asked    int
		took     time.Duration
	}{"who hangs": {answered: 2, asked: 2, took: 500 * time.Millisecond}, "who is slow": {answered: 1, asked: 3, took: 1400 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, client.Options{})
				s.Put(bustest.Item(1, "one"))
				asked := 0
				start := time.Now()
				s.answers(func(_ string, m *nats.Msg) bool {
					if asked++; asked != c.answered {
						return true
					}
					if c.answered == 2 {
						return false
					}
					time.AfterFunc(c.took, func() {
						if err := m.Respond([]byte(`{"fabric":"` + theFabric + `","content":"one"}`)); err != nil {
							t.Error(err)
						}
					})
					return true
				})
				d, err := s.client.Drain(t.Context(), "agent/1", "")
				if took := time.Since(start); err != nil || d.Content != "one" || asked != c.asked || took != c.took {
					t.Errorf("%+v, %v after %v, asked %d times", d, err, took, asked)
				}
			})
		})
	}
}

func TestAFailedDrainIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		start := time.Now()
		if _, err := f.client.Drain(t.Context(), "agent/1", ""); !errors.Is(err, client.ErrUnreachable) || time.Since(start) > 15*time.Second {
			t.Errorf("without a broker: %v after %v", err, time.Since(start))
		}
		if _, err := f.client.Drain(t.Context(), "", ""); !errors.Is(err, client.ErrInvalid) {
			t.Error(err)
		}
		s := newStore(t, client.Options{})
		s.answers(func(_ string, m *nats.Msg) bool { bustest.Refuse(m, schema.CodeBadRequest, "no"); return true })
		_, err := s.client.Drain(t.Context(), "agent/1", "")
		if e, ok := errors.AsType[*schema.ControlError](err); !ok || e.Code != schema.CodeBadRequest || len(slices.Clone(s.Drains)) != 0 {
			t.Error(err)
		}
	})
}
