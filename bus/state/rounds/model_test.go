package rounds_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
	"pgregory.net/rapid"
)

// model is what an agent's round should be, by a clock.
type model struct {
	there            bool
	round            schema.Round
	began, warnedAt  time.Time
	denied           map[string]bool
	denials          int
	terminate, wraps bool
}

func (m *model) start(req *schema.RoundRequest) {
	last, had := m.round, m.there
	*m = model{there: true, began: time.Now(), denied: map[string]bool{}}
	m.round.Grace = 2 * minute
	if had {
		m.round.Number, m.round.Grace, m.round.Initial, m.round.Subsequent = last.Number+1, last.Grace, last.Initial, last.Subsequent
	}
	if req.Number != nil {
		m.round.Number = *req.Number
	}
	if req.Grace != nil {
		m.round.Grace = *req.Grace
	}
	if req.Initial != nil {
		m.round.Initial = req.Initial
	}
	if req.Subsequent != nil {
		m.round.Subsequent = req.Subsequent
	}
}

// now is what is to be seen of it.
func (m *model) now(agent string) (schema.Round, bool) {
	if !m.there {
		return schema.Round{}, false
	}
	r := m.round
	r.Agent, r.Elapsed = agent, schema.Duration(time.Since(m.began))
	r.Denials, r.Terminate, r.WrapUp = m.denials, m.terminate, m.wraps
	if r.Warned = !m.warnedAt.IsZero(); r.Warned {
		r.Since = schema.Duration(time.Since(m.warnedAt))
	}
	return r, true
}

func (m *model) deny(event string) {
	if !m.terminate && !m.denied[event] {
		m.denied[event] = true
		m.denials++
		m.terminate = m.denials == rounds.MaxDenials
	}
}

// TestRoundsMatchTheModel does all that can be done with rounds, in any
// order, through two brokers.
func TestRoundsMatchTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := bustest.Start(t)
		brokers := []*rounds.Rounds{open(t, bustest.JetStream(t, srv), rounds.Options{}), open(t, bustest.JetStream(t, srv), rounds.Options{})}
		n := 0
		// In a bubble rapid must not ask for the deadline of the test.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			n++
			w := world{t: t, agent: fmt.Sprintf("agent %d", n)}
			rt.Repeat(map[string]func(*rapid.T){
				"":       func(rt *rapid.T) { w.look(rt, brokers) },
				"start":  func(rt *rapid.T) { w.start(rt, pick(rt, brokers)) },
				"wrapup": func(rt *rapid.T) { w.wrapUp(rt, pick(rt, brokers)) },
				"warned": func(rt *rapid.T) { w.warned(rt, pick(rt, brokers)) },
				"denied": func(rt *rapid.T) { w.denied(rt, pick(rt, brokers)) },
				"passed": func(rt *rapid.T) {
					if err := pick(rt, brokers).Passed(t.Context(), w.agent); err != nil {
						rt.Error(err)
					}
					w.model.denied, w.model.denials = map[string]bool{}, 0
				},
				"wait": func(rt *rapid.T) {
					<-time.After(rapid.SampledFrom([]time.Duration{1, time.Second, time.Minute}).Draw(rt, "wait"))
				},
			})
		})
	})
}

func pick(rt *rapid.T, brokers []*rounds.Rounds) *rounds.Rounds {
	synctest.Wait() // so that it knows what others wrote
	return rapid.SampledFrom(brokers).Draw(rt, "broker")
}

type world struct {
	t      *testing.T
	agent  string
	model  model
	starts []uint64
}

func (w *world) look(rt *rapid.T, brokers []*rounds.Rounds) {
	synctest.Wait()
	for _, r := range brokers {
		got, ok := r.Get(w.agent)
		want, wantOK := w.model.now(w.agent)
		if ok {
			want.Start = w.starts[len(w.starts)-1]
		}
		if diff := cmp.Diff(want, got); diff != "" || ok != wantOK {
			rt.Fatalf("model -, broker +:\n%s", diff)
		}
		due := false
		for _, d := range r.SoftDue() {
			due = due || d.Agent == w.agent
		}
		if due != (ok && want.SoftDue()) {
			rt.Fatalf("due: %v; the round is %+v", due, want)
		}
	}
}

func (w *world) start(rt *rapid.T, r *rounds.Rounds) {
	limit := rapid.Ptr(rapid.Map(rapid.IntRange(0, 3), func(n int) schema.Duration { return schema.Duration(n) * minute }), true)
	req := schema.RoundRequest{
		Initial: limit.Draw(rt, "initial"), Subsequent: limit.Draw(rt, "subsequent"), Grace: limit.Draw(rt, "grace"),
		Number: rapid.Ptr(rapid.IntRange(0, 2), true).Draw(rt, "number"),
	}
	got, err := r.Start(w.t.Context(), w.agent, &req)
	if err != nil || len(w.starts) > 0 && got.Start <= w.starts[len(w.starts)-1] {
		rt.Fatalf("%+v, %v", got, err)
	}
	w.starts = append(w.starts, got.Start)
	w.model.start(&req)
}

func (w *world) wrapUp(rt *rapid.T, r *rounds.Rounds) {
	got, asked, err := r.WrapUp(w.t.Context(), w.agent, &schema.RoundRequest{})
	if err != nil || asked == w.model.wraps {
		rt.Fatalf("%+v, %v, %v", got, asked, err)
	}
	if !w.model.there {
		w.model.start(&schema.RoundRequest{})
		w.starts = append(w.starts, got.Start)
	}
	w.model.wraps = true
}

// some is the start of one of the rounds so far, most often the newest.
func (w *world) some(rt *rapid.T) uint64 {
	if len(w.starts) == 0 {
		return 1
	}
	return w.starts[max(0, len(w.starts)-1-rapid.IntRange(0, 3).Draw(rt, "round")/2)]
}

func (w *world) newest(start uint64) bool {
	return w.model.there && start == w.starts[len(w.starts)-1]
}

func (w *world) warned(rt *rapid.T, r *rounds.Rounds) {
	s := w.some(rt)
	if err := r.Warned(w.t.Context(), w.agent, s); err != nil {
		rt.Fatal(err)
	}
	if w.newest(s) && w.model.warnedAt.IsZero() {
		w.model.warnedAt = time.Now()
	}
}

func (w *world) denied(rt *rapid.T, r *rounds.Rounds) {
	s, event := w.some(rt), fmt.Sprint("e", rapid.IntRange(0, 14).Draw(rt, "event"))
	_, err := r.Denied(w.t.Context(), w.agent, s, event)
	if (err == nil) != w.model.there {
		rt.Fatal(err)
	}
	if w.newest(s) {
		w.model.deny(event)
	}
}
