package aggregator_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

func TestWhatHappensInTheMemoryIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		l := observe.NewLedger(reg, slog.New(slog.DiscardHandler))
		f := &fabric{t: t, reg: reg}
		w, free := l.Queue(), &schema.Item{Source: "ci"}
		w.Duplicate("ci")
		w.Delivered("a", human("x"))
		w.Delivered("a", free)
		w.Delivered("a", &schema.Item{Source: "cd"})
		w.Redelivered("a", free)
		w.LeaseExpired("a", eventID)
		w.Expired(&schema.Item{Scope: schema.Scope{Agent: "a"}, Source: "ci"})
		w.Expired(free) // for all: that it ends is no trouble
		w.Conflict()
		l.Conflict()
		for _, c := range []struct {
			want   float64
			name   string
			labels []string
		}{
			{1, "injections_duplicates_total", nil},
			{1, "injections_delivered_total", []string{"source=human"}},
			{2, "injections_delivered_total", []string{"source=other"}},
			{0, "injections_delivered_total", []string{"source=peer"}},
			{-1, "injections_delivered_total", []string{"source=ci"}},
			{1, "injections_redelivered_total", nil},
			{1, "lease_expirations_total", nil},
			{1, "injections_expired_total", []string{"source=other"}},
			{2, "state_conflicts_total", nil},
			{0, "soft_timeouts_total", nil},
			{0, "hard_timeouts_total", nil},
			{0, "deliveries_cut_total", nil},
		} {
			if n := f.value(c.name, c.labels...); n != c.want {
				t.Errorf("%s %v is %v, not %v", c.name, c.labels, n, c.want)
			}
		}
	})
}

func TestExpiredItemsAreOnTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := observe.NewLedger(nil, slog.New(slog.DiscardHandler))
		f := startWith(t, aggregator.Options{Ledger: l}, library{})
		records := f.records()
		l.Queue().Expired(&schema.Item{Scope: schema.Scope{Agent: "a"}, Key: "k1", Source: "ci", Content: "a secret", Sequence: 3, Accepted: time.Now().Add(-time.Minute)})
		l.Queue().Expired(&schema.Item{Key: "k2", Source: schema.SourceHuman, Accepted: time.Now()})
		wanted := []schema.Record{
			{Agent: "a", Expired: &schema.PendingItem{
				Key: "k1", Sequence: 3, Scope: schema.Scope{Agent: "a"}, Source: "ci", State: schema.Expired, Length: 8, Age: schema.Duration(time.Minute),
			}},
			{Expired: &schema.PendingItem{Key: "k2", Source: schema.SourceHuman, State: schema.Expired}},
		}
		if diff := cmp.Diff(wanted, records(), cmpopts.IgnoreFields(schema.Record{}, "Time")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestMoreExpiredItemsThanTheFeedTakesAreOnlyCounted checks that a feed without a reader does not
// delay the queue.
func TestMoreExpiredItemsThanTheFeedTakesAreOnlyCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		l := observe.NewLedger(reg, slog.New(slog.DiscardHandler))
		for range 5000 {
			l.Queue().Expired(&schema.Item{Scope: schema.Scope{Agent: "a"}, Source: schema.SourceHuman})
		}
		if n := (&fabric{t: t, reg: reg}).value("injections_expired_total", "source=human"); n != 5000 {
			t.Errorf("%v were counted", n)
		}
	})
}
