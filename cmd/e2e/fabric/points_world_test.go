package fabric_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// A world is a server and brokers, each by wires of its own, in which one thing
// goes wrong at one point.
type world struct {
	t    *testing.T
	dir  string
	log  *logbook
	cell cell
	cfg  schema.Config
	// dedup is how long the brokers remember ends.
	dedup time.Duration
	began time.Time

	// graves waits for the processes that end outside the path of the code that stopped them.
	graves sync.WaitGroup

	mu     sync.Mutex // guards the following fields
	server *server.Server
	nodes  []*node
	passed int       // how often the point was passed
	hit    bool      // the point was reached, and the failure of the cell was caused
	whole  time.Time // when everything works again
	spoke  *node     // the broker that sent the newest verdict
	turn   *askAgent // the agent that asks now, or asked last
	tells  victim    // the producer of the items
	ended  bool
}

// A victim is a process that asks, and its way to the server.
type victim interface {
	die() bool // it was alive
	cutOff(cut bool)
}

// newWorld begins with two brokers.
func newWorld(t *testing.T, c cell) *world {
	runtime.GC() // timers that another bubble left in a pool must not be met in this one
	runtime.GC()
	w := &world{t: t, dir: t.TempDir(), log: newLogbook(), cell: c, dedup: time.Hour, began: time.Now()}
	if c.row.point == point(queue.StepMarkStored) {
		w.dedup = 10 * time.Second
	}
	doc, err := hooksyaml.Read("hooks.yaml", []byte(nothingWritten), hooksyaml.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.cfg = doc.Config
	w.cfg.Version, w.cfg.Fabric = 1, "f"
	w.serve()
	t.Cleanup(w.end)
	for _, name := range []string{"one", "two"} {
		if !w.live(name) {
			t.FailNow()
		}
	}
	return w
}

// serve starts the server on its directory.
func (w *world) serve() {
	s, err := server.Start(context.Background(), server.Options{Dir: w.dir, SyncInterval: time.Minute})
	if err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = s
}

// InProcessConn connects to the server that runs now.
func (w *world) InProcessConn() (net.Conn, error) {
	w.mu.Lock()
	s := w.server
	w.mu.Unlock()
	if s == nil {
		return nil, errNoWire
	}
	return s.InProcessConn()
}

// restart stops the server and starts it again.
func (w *world) restart() {
	w.mu.Lock()
	s := w.server
	w.server = nil
	w.mu.Unlock()
	if err := s.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	w.serve()
}

// end ends all that is left.
func (w *world) end() {
	w.mu.Lock()
	w.ended = true
	nodes, s := w.nodes, w.server
	w.mu.Unlock()
	for _, n := range nodes {
		n.die()
	}
	w.graves.Wait()
	if err := s.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	bustest.Settle()
}

// A node is one broker's process.
type node struct {
	w            *world
	name         string
	dead         atomic.Bool
	wires        [2]*wire // of its events, and of its work
	events, work *nats.Conn
	rounds       *rounds.Rounds
	queue        *queue.Queue
	agg          *aggregator.Aggregator
}

var errDead = errors.New("this process is dead")

// live begins a broker's life, and reports whether that worked.
func (w *world) live(name string) bool {
	n := &node{w: w, name: name}
	n.wires = [2]*wire{newWire(w, n.sends), newWire(w, nil)}
	w.mu.Lock()
	if !w.ended {
		w.nodes = append(w.nodes, n)
	}
	ended := w.ended
	w.mu.Unlock()
	if ended {
		return true
	}
	err := n.start()
	if err != nil {
		w.t.Errorf("broker %s: %v", name, err)
	}
	return err == nil
}

// start wires a broker as its program does.
func (n *node) start() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	log := slog.New(n.w.log).With("broker", n.name)
	for i, nc := range []**nats.Conn{&n.events, &n.work} {
		if *nc, err = bus.Connect(ctx, bus.Options{Name: n.name, InProcess: n.wires[i], Logger: log}); err != nil {
			return err
		}
	}
	js, err := jetstream.New(n.work)
	if err != nil {
		return err
	}
	n.rounds, err = rounds.Open(ctx, js, rounds.Options{Logger: log, Step: func(s rounds.Step) error { return n.step(point(s)) }})
	if err != nil {
		return err
	}
	n.queue, err = queue.Open(ctx, js, queue.Options{
		Dedup: n.w.dedup, Finish: n.finish, Logger: log, Step: func(s queue.Step) error { return n.step(point(s)) },
	})
	if err != nil {
		return err
	}
	n.agg, err = aggregator.Start(aggregator.Options{
		Events: n.events, Work: n.work, Fabric: n.w.cfg.Fabric, Node: n.name, Logger: log,
		Memory: stores.Memory{Queue: n.queue, Rounds: n.rounds},
		Stages: builtin.Stage,
	})
	if err != nil {
		return err
	}
	return n.agg.Activate(n.w.cfg)
}

// finish has the grace of a round begin when its agent was warned.
func (n *node) finish(ctx context.Context, agent string, it *schema.Item) error {
	if it.Producer != deliver.RoundProducer {
		return nil
	}
	return n.rounds.Warned(ctx, agent, it.Number)
}

// step passes a point, at which the process may die.
func (n *node) step(p point) error {
	if !n.dead.Load() {
		n.w.reach(p, n)
	}
	if n.dead.Load() {
		return errDead
	}
	return nil
}

// sends looks for verdicts that bring something.
func (n *node) sends(out bool, what []byte) {
	if out && brings(what) {
		n.w.mu.Lock()
		n.w.spoke = n
		n.w.mu.Unlock()
		n.w.reach(verdictDecided, n)
	}
}

// die ends the process: nothing that it still says is heard.
func (n *node) die() bool {
	if n.dead.Swap(true) {
		return false
	}
	for _, w := range n.wires {
		w.tear()
	}
	n.w.graves.Go(n.bury)
	return true
}

func (n *node) cutOff(cut bool) { cutOff(cut, n.wires[:]...) }

// bury ends what a process would take with it.
func (n *node) bury() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for _, nc := range []*nats.Conn{n.events, n.work} {
		if nc != nil {
			nc.Close()
		}
	}
	if n.agg != nil {
		_ = n.agg.Drain(now) // it is dead
	}
	if n.queue != nil {
		_ = n.queue.Close(context.Background())
	}
	if n.rounds != nil {
		_ = n.rounds.Close(context.Background())
	}
	for _, w := range n.wires {
		w.done()
	}
}

func cutOff(cut bool, wires ...*wire) {
	for _, w := range wires {
		if cut {
			w.cut()
		} else {
			w.mend()
		}
	}
}
