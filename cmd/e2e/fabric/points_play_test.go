package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
)

// tooLong is when a play must have come to its end.
const tooLong = 6 * time.Minute

// A teller puts things into the queue, and starts rounds. It says the same
// until it is answered.
type teller struct {
	w      *world
	wire   *wire
	nc     *nats.Conn
	dead   atomic.Bool
	failed int // requests without an answer
}

func (w *world) teller() *teller {
	p := &teller{w: w, wire: newWire(w, nil)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tells = p
	return p
}

func (p *teller) die() bool {
	if p.dead.Swap(true) {
		return false
	}
	p.wire.tear()
	return true
}

func (p *teller) cutOff(cut bool) { cutOff(cut, p.wire) }

// request asks until it is answered.
func (p *teller) request(verb, agent string, req, answer any) bool {
	for began := time.Now(); time.Since(began) < tooLong; <-time.After(500 * time.Millisecond) {
		err := p.once(verb, agent, req, answer)
		if err == nil {
			return true
		}
		p.failed++
		if refused, ok := errors.AsType[*schema.ControlError](err); ok && refused.Code != schema.CodeUnavailable {
			p.w.t.Errorf("%s: %v", verb, err)
			return false
		}
	}
	p.w.t.Errorf("%s was never answered", verb)
	return false
}

func (p *teller) once(verb, agent string, req, answer any) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if p.dead.Swap(false) { // another process takes its place
		p.close()
		p.wire = newWire(p.w, nil)
	}
	if p.nc == nil {
		if p.nc, err = bus.Connect(ctx, bus.Options{Name: "teller", InProcess: p.wire}); err != nil {
			return err
		}
	}
	return ask(ctx, p.nc, verb, agent, req, answer)
}

func (p *teller) close() {
	if p.nc != nil {
		p.nc.Close()
		p.nc = nil
	}
	p.wire.done()
}

// ask is one control request.
func ask(ctx context.Context, nc *nats.Conn, verb, agent string, req, answer any) error {
	subject, err := bus.ControlSubject(verb, agent)
	if err != nil {
		return err
	}
	data, err := schema.Marshal(req)
	if err != nil {
		return err
	}
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		return err
	}
	if code := m.Header.Get(schema.HeaderServiceErrorCode); code != "" {
		return &schema.ControlError{Code: code, Message: m.Header.Get(schema.HeaderServiceError)}
	}
	return schema.Unmarshal(m.Data, answer)
}

// A play is what happens in a world.
type play struct {
	*world
	teller *teller
	agents []*askAgent
	// accepted are the notes that were accepted for each agent, in order.
	accepted map[string][]string
	told     atomic.Bool // all is accepted
}

// play begins with agents whose shims are daemons, or not.
func (w *world) play(daemons ...bool) *play {
	p := &play{world: w, teller: w.teller(), accepted: make(map[string][]string)}
	for i, daemon := range daemons {
		p.agents = append(p.agents, w.agent(string(rune('a'+i)), daemon))
	}
	return p
}

// run plays what leads to the cell's point, and reports whether something came
// twice.
func (p *play) run() bool {
	if p.cell.way == timeOver {
		p.round()
	} else {
		p.items()
	}
	p.teller.close()
	for _, a := range p.agents {
		a.die()
	}
	return p.twice()
}

// items has notes of two sources come to two agents that work.
func (p *play) items() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.tell()
	}()
	for began := time.Now(); !p.over(); {
		if time.Since(began) > tooLong {
			p.t.Errorf("it does not come to an end\n%s", p.log)
			break
		}
		for _, a := range p.agents {
			a.call(schema.PostToolUse, "Bash")
			<-time.After(time.Second)
		}
		<-time.After(2 * time.Second) // what rode on no question is acknowledged by itself
	}
	<-done
}

// tell has all notes accepted.
func (p *play) tell() {
	sequences := make(map[uint64]bool)
	for n := range 2 {
		for _, a := range p.agents {
			for _, source := range []string{"human", "ci"} {
				name := fmt.Sprintf("%s:%d", source, n+1)
				var r schema.Receipt
				p.teller.request(schema.VerbInject, a.id, &schema.InjectRequest{
					Content: fmt.Sprintf("note %s for %s", name, a.id), Source: source, Producer: source, Number: uint64(n + 1),
				}, &r)
				if r.Sequence == 0 || sequences[r.Sequence] {
					p.t.Errorf("%s for %s: %+v", name, a.id, r)
				}
				sequences[r.Sequence] = true
				p.accepted[a.id] = append(p.accepted[a.id], name)
				<-time.After(700 * time.Millisecond)
			}
		}
	}
	p.told.Store(true)
}

// over reports whether all was accepted and heard, nothing is pending, and what
// is late had its time.
func (p *play) over() bool {
	if !p.told.Load() || !p.settled() {
		return false
	}
	for _, a := range p.agents {
		if p.pending(a.id) != 0 {
			return false
		}
	}
	return true
}

// pending returns the number of items that wait for an agent; -1: no broker answers.
func (w *world) pending(agent string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Options{Name: "operator", InProcess: w})
	if err != nil {
		return -1
	}
	defer nc.Close()
	var answer schema.PendingAnswer
	if err := ask(ctx, nc, schema.VerbPending, agent, &schema.PendingRequest{}, &answer); err != nil {
		return -1
	}
	return answer.Total
}

// twice judges what the agents heard against what was accepted, and reports
// whether something came twice.
func (p *play) twice() (some bool) {
	for _, a := range p.agents {
		times := make(map[string]int)
		var firsts []string
		for _, n := range a.heard {
			if times[n]++; times[n] == 1 {
				firsts = append(firsts, n)
			}
			some = some || times[n] > 1
			if times[n] > 2 || times[n] > 1 && !a.perhaps[n] {
				p.t.Errorf("%s was told %q %d times", a.id, n, times[n])
			}
		}
		if got, want := bySource(firsts), bySource(p.accepted[a.id]); !maps.EqualFunc(got, want, slices.Equal) {
			p.t.Errorf("%s was told %q; accepted were %q\n%s", a.id, got, want, p.log)
		}
		if len(a.perhaps) > 0 && p.cell.outcome() != twice {
			p.t.Errorf("%q may come twice, and the table does not say so", slices.Sorted(maps.Keys(a.perhaps)))
		}
	}
	return some
}

func bySource(notes []string) map[string][]string {
	all := make(map[string][]string)
	for _, n := range notes {
		source, _, _ := strings.Cut(n, ":")
		all[source] = append(all[source], n)
	}
	return all
}

// A gateRefusal is a call that the hard limit refused.
type gateRefusal struct {
	event string
	at    time.Time
}

// grace and soft are those of the round.
const (
	softLimit = 15 * time.Second
	graceTime = 5 * time.Second
)

// round has an agent work until its run is ended, and then in another round.
func (p *play) round() {
	p.teller.starts(0)
	a := p.agents[0]
	p.accepted[a.id] = []string{timeIsOver}
	startedTwice := p.teller.failed > 0
	var refused []gateRefusal
	unheard := 0
	for began := time.Now(); !p.told.Load() || !p.over(); <-time.After(time.Second) {
		if time.Since(began) > tooLong {
			p.t.Errorf("it does not come to an end\n%s", p.log)
			return
		}
		v := a.call(schema.PreToolUse, "Bash")
		switch {
		case v == nil:
			unheard++
			continue
		case v.Decision == schema.Deny && p.told.Load():
			p.t.Errorf("in another round: %+v", v)
		case v.Decision == schema.Deny:
			refused = append(refused, gateRefusal{v.EventID, time.Now()})
		default:
			a.call(schema.PostToolUse, "Bash")
		}
		if v.Terminate != nil && !p.told.Load() {
			if v := a.call(schema.PreToolUse, "vote"); v != nil && v.Decision == schema.Deny {
				p.t.Errorf("a vote: %+v", v)
			}
			p.judge(refused, unheard)
			p.teller.starts(1)
			p.told.Store(true)
		}
	}
	if startedTwice { // the first one may have come to its end, too
		a.heard = slices.DeleteFunc(a.heard, func(n string) bool { return n == roundIsOver })
	}
}

// starts starts a round. Only the first has a limit.
func (p *teller) starts(number int) {
	req := &schema.RoundRequest{Action: schema.RoundStart, Initial: limit(softLimit), Grace: limit(graceTime), Number: &number}
	p.request(schema.VerbRound, "a", req, &schema.Round{})
}

// judge holds the refusals to the warning and to their number.
func (p *play) judge(refused []gateRefusal, unheard int) {
	a := p.agents[0]
	i := slices.Index(a.heard, timeIsOver)
	if i < 0 {
		p.t.Errorf("%d calls were denied without a warning", len(refused))
		return
	}
	if after := refused[0].at.Sub(a.when[i]); after < graceTime {
		p.t.Errorf("refused %v after the warning", after)
	}
	least := rounds.MaxDenials
	if unheard > 0 { // one of them may have been counted
		least--
	}
	if n := len(refused); n > rounds.MaxDenials || n < least {
		p.t.Errorf("the run was ended after %d refusals; %d calls were not heard of\n%s", n, unheard, p.log)
	}
}
