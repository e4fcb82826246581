package aggregator_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// library is the handlers of the worker in the aggregator's process.
type library map[string]workers.HandlerFunc

func (l library) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	if f := l[h.Handler]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("there is no %q", h.Handler)
}

func (l library) Close() error { return nil }

// says returns a handler that always gives the same answer.
func says(r schema.Result) workers.HandlerFunc {
	return func(context.Context, *schema.Event) (schema.Result, error) { return r, nil }
}

// hook returns a hook of the pool "default" at PreToolUse, with changes.
func hook(name string, change ...func(*schema.Hook)) schema.Hook {
	h := schema.Hook{
		Name: name, Event: schema.PreToolUse, Type: schema.Builtin, Handler: name,
		Timeout: schema.DefaultTimeout, Pool: schema.DefaultPool,
	}
	for _, c := range change {
		c(&h)
	}
	return h
}

func failClosed(h *schema.Hook) { h.FailClosed = true }
func idempotent(h *schema.Hook) { h.Idempotent = true }
func remote(h *schema.Hook)     { h.Pool = "p" }
func at(t schema.EventType) func(*schema.Hook) {
	return func(h *schema.Hook) {
		h.Event, h.Readonly, h.Idempotent = t, t.ReadonlyByDefault(), t.ReadonlyByDefault()
	}
}
func within(d time.Duration) func(*schema.Hook) {
	return func(h *schema.Hook) { h.Timeout = schema.Duration(d) }
}
func matching(glob string) func(*schema.Hook) { return func(h *schema.Hook) { h.Matcher = glob } }

// fabric is an aggregator with a local worker on a bus of its own.
type fabric struct {
	t      *testing.T
	server *server.Server
	agg    *aggregator.Aggregator
	local  *workers.Worker
	shim   *nats.Conn
	reg    *prometheus.Registry
}

// start runs an aggregator of config version 1 with the given hooks.
func start(t *testing.T, lib library, hooks ...schema.Hook) *fabric {
	t.Helper()
	return startWith(t, aggregator.Options{}, lib, hooks...)
}

func startWith(t *testing.T, opt aggregator.Options, lib library, hooks ...schema.Hook) *fabric {
	t.Helper()
	return startOn(t, bustest.Start(t), opt, lib, hooks...)
}

// startOn is startWith on a server that others may use too.
func startOn(t *testing.T, s *server.Server, opt aggregator.Options, lib library, hooks ...schema.Hook) *fabric {
	t.Helper()
	f := &fabric{t: t, server: s, shim: bustest.Connect(t, s, "shim"), reg: prometheus.NewPedanticRegistry()}
	f.local = workers.New(workers.Options{
		Name: "local", Pools: []string{schema.DefaultPool}, Capacity: 4, Logger: slog.New(slog.DiscardHandler),
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: lib},
		Freed:   func() { f.agg.Members().Freed(schema.DefaultPool) },
	})
	opt.Events = bustest.Connect(t, s, "events")
	if opt.Work == nil {
		opt.Work = bustest.Connect(t, s, "work")
	}
	opt.Fabric, opt.Registerer = "fabric-1", f.reg
	if opt.Local == nil {
		opt.Local = f.local
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if f.agg, err = aggregator.Start(opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.agg.Drain(context.Background()) })
	f.activate(1, hooks...)
	return f
}

func (f *fabric) activate(version uint64, hooks ...schema.Hook) {
	f.t.Helper()
	cfg := schema.Config{Version: version, Hooks: hooks}
	f.local.Load(cfg)
	if err := f.agg.Activate(cfg); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
}

const eventID = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"

// event returns a question of agent "a" about a call of Bash with a minute left.
func event(t schema.EventType) *nats.Msg {
	r := schema.Routing{Event: t, Agent: "a", Session: "s", ID: eventID}
	body := `{"hook_type":"` + string(t) + `","agent_id":"a"`
	if t.HasTool() {
		r.Tool, body = "Bash", body+`,"tool_name":"Bash","tool_input":{"command":"ls"}`
	}
	subject, err := bus.EventSubject(r.Agent, t)
	if err != nil {
		panic(err)
	}
	return bus.EventMsg(subject, r, 1, time.Minute, nil, []byte(body+"}"))
}

func eventOf(name string) *nats.Msg { return event(schema.EventType(name)) }

// after1m ends when all that anybody waits for has come to an end.
func after1m() <-chan time.Time { return time.After(time.Minute) }

// reply is one message that came on a question's reply subject, and when.
type reply struct {
	*nats.Msg
	after time.Duration
}

// asking is a question under way.
type asking struct {
	t       *testing.T
	start   time.Time
	replies chan reply
	mu      sync.Mutex
	beats   []time.Duration
	// ended is when the answer came, if the test recorded it, and refused whether it was a refusal.
	ended   time.Duration
	refused bool
}

// send sends m and collects all replies to it.
func (f *fabric) send(m *nats.Msg) *asking {
	f.t.Helper()
	a := &asking{t: f.t, start: time.Now(), replies: make(chan reply, 1000)}
	m.Reply = f.shim.NewInbox()
	_, err := f.shim.Subscribe(m.Reply, func(m *nats.Msg) {
		after := time.Since(a.start)
		if m.Header.Get(schema.HeaderBeat) == "1" && len(m.Data) == 0 {
			a.mu.Lock()
			a.beats = append(a.beats, after)
			a.mu.Unlock()
			return
		}
		a.replies <- reply{m, after}
	})
	if err == nil {
		err = f.shim.PublishMsg(m)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// verdict waits for the answer.
func (a *asking) verdict() (v schema.Verdict, after time.Duration) {
	a.t.Helper()
	select {
	case r := <-a.replies:
		if err := schema.Unmarshal(r.Data, &v); err != nil {
			a.t.Errorf("%v: %q %v", err, r.Data, r.Header)
		}
		return v, r.after
	case <-time.After(2 * time.Minute):
		a.t.Error("there was no answer")
		return v, 0
	}
}

// nothing reports whether no reply or beat comes for a minute, and none is left to read.
func (a *asking) nothing() bool {
	a.t.Helper()
	a.mu.Lock()
	before := len(a.beats)
	a.mu.Unlock()
	<-time.After(time.Minute)
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.beats) == before && len(a.replies) == 0
}

func (f *fabric) ask(m *nats.Msg) schema.Verdict {
	f.t.Helper()
	v, _ := f.send(m).verdict()
	return v
}

// want compares a verdict's decision and its trail: hook:outcome for each.
func want(t *testing.T, v schema.Verdict, d schema.Decision, trail string) {
	t.Helper()
	got := ""
	for i, x := range v.ExecutedHooks {
		if i > 0 {
			got += " "
		}
		got += x.Hook + ":" + string(x.Outcome)
	}
	if v.Decision != d || got != trail {
		t.Errorf("%q, %q; want %q, %q\n%+v", v.Decision, got, d, trail, v)
	}
}

// value returns the value of a metric with these labels, or -1. It waits first, because the
// aggregator counts after it answers.
func (f *fabric) value(name string, labels ...string) float64 {
	f.t.Helper()
	synctest.Wait()
	families, err := f.reg.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "hookfabric_"+name {
			continue
		}
	series:
		for _, m := range family.GetMetric() {
			for i, l := range m.GetLabel() {
				if i >= len(labels) || l.GetName()+"="+l.GetValue() != labels[i] {
					continue series
				}
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return -1
}

// fakeWorker is a worker of the pool "p" whose answers the test writes.
type fakeWorker struct {
	f    *fabric
	name string
	nc   *nats.Conn
	got  chan *schema.Batch
	msgs chan *nats.Msg
}

func (f *fabric) worker(name string) *fakeWorker {
	f.t.Helper()
	w := &fakeWorker{f: f, name: name, nc: bustest.Connect(f.t, f.server, name), got: make(chan *schema.Batch, 100), msgs: make(chan *nats.Msg, 100)}
	if _, err := w.nc.Subscribe("hook.v1.run.p."+name, func(m *nats.Msg) {
		b, err := bus.ParseBatchMsg(m)
		if err != nil {
			f.t.Error(err)
		}
		w.msgs <- m
		w.got <- b
	}); err != nil {
		f.t.Fatal(err)
	}
	w.beat(schema.Beat{Capacity: 9})
	synctest.Wait()
	return w
}

func (w *fakeWorker) beat(b schema.Beat) {
	w.f.t.Helper()
	b.Pool, b.Worker = "p", w.name
	if b.Versions == nil {
		b.Versions = []uint64{1, 2, 3}
	}
	data, err := schema.Marshal(&b)
	if err == nil {
		err = w.nc.Publish("hook.v1.beat.p."+w.name, data)
	}
	if err != nil {
		w.f.t.Error(err)
	}
}

// batch returns the next batch that the worker receives.
func (w *fakeWorker) batch() (*schema.Batch, *nats.Msg) {
	w.f.t.Helper()
	select {
	case b := <-w.got:
		return b, <-w.msgs
	case <-time.After(time.Minute):
		w.f.t.Fatalf("%s got no batch", w.name)
		return nil, nil
	}
}

// answer answers a batch with the same for each of its hooks.
func (w *fakeWorker) answer(b *schema.Batch, m *nats.Msg, r schema.Result) {
	w.f.t.Helper()
	out := schema.BatchReply{Worker: w.name}
	for _, h := range b.Hooks {
		out.Outcomes = append(out.Outcomes, schema.Outcome{Hook: h, Result: r})
	}
	data, err := schema.Marshal(&out)
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		w.f.t.Error(err)
	}
}
