package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func (m *Members) hear(worker string, capacity int) {
	m.Beat(&schema.Beat{Pool: "p", Worker: worker, Capacity: capacity, Versions: []uint64{1}})
}

// waiting enqueues a call and fails the test if it need not wait.
func waiting(t *testing.T, m *Members, excluded ...string) *queueEntry {
	t.Helper()
	c := &queueEntry{version: 1, excluded: excluded}
	if _, wait, err := m.take("p", c); !wait || err != nil {
		t.Fatalf("it need not wait: %v", err)
	}
	return c
}

func TestASlotOfACallThatLeavesGoesToTheNext(t *testing.T) {
	m := NewMembers(10)
	m.hear("a", 1)
	to, _, _ := m.take("p", &queueEntry{version: 1})
	first, second := waiting(t, m), waiting(t, m)
	m.returnSlot(to.member, 1, schema.StatusOK)
	m.leave("p", first) // it has been given the slot, and has not received it yet
	if got := <-second.got; got.worker != "a" {
		t.Errorf("the next call got %+v", got)
	}
}

func TestAWakeUpOfACallThatLeavesGoesToTheNext(t *testing.T) {
	m := NewMembers(10)
	first, second := &queueEntry{local: true}, &queueEntry{local: true}
	for _, c := range []*queueEntry{first, second} {
		if _, wait, _ := m.take("p", c); !wait {
			t.Fatal("it need not wait")
		}
	}
	m.Freed("p")
	m.leave("p", first)
	select {
	case <-second.got:
	default:
		t.Error("the next call was not woken")
	}
}

func TestASlotGoesToTheFirstCallThatCanUseIt(t *testing.T) {
	m := NewMembers(10)
	m.hear("a", 1)
	m.hear("b", 0)
	to, _, _ := m.take("p", &queueEntry{version: 1})
	other, same := waiting(t, m, "a"), waiting(t, m)
	m.returnSlot(to.member, 1, schema.StatusOK)
	if got := <-same.got; got.worker != "a" {
		t.Errorf("the call that can use the slot got %+v", got)
	}
	if len(other.got) > 0 {
		t.Error("the call that cannot use it was given it")
	}
	m.hear("b", 1)
	if got := <-other.got; got.worker != "b" {
		t.Errorf("then the other one got %+v", got)
	}
}

func TestABatchIsNotSentToAWorkerThatHasLeft(t *testing.T) {
	m := NewMembers(10)
	m.hear("a", 1)
	to, _, _ := m.take("p", &queueEntry{version: 1})
	m.Gone("a")
	if m.track(&sentBatch{wire: schema.Batch{Batch: "1"}, pool: "p", worker: "a"}, to.member) {
		t.Error("it is sent to a worker that has left")
	}
	m.hear("a", 1) // it is back, without that batch
	if m.track(&sentBatch{wire: schema.Batch{Batch: "2"}, pool: "p", worker: "a"}, to.member) {
		t.Error("it is sent on the slot of the one before")
	}
	if len(m.sent) > 0 {
		t.Errorf("in flight: %d", len(m.sent))
	}
}

func TestTheLeastLoadedWorkerWithTheVersionIsChosen(t *testing.T) {
	m := NewMembers(10)
	counts := map[string]int{}
	m.hear("small", 2)
	m.hear("large", 8)
	m.Beat(&schema.Beat{Pool: "p", Worker: "old", Capacity: 100, Versions: []uint64{7}})
	for range 10 {
		to, _, _ := m.take("p", &queueEntry{version: 1})
		counts[to.worker]++
	}
	if counts["small"] != 2 || counts["large"] != 8 {
		t.Errorf("the load went to %v; want it spread by capacity", counts)
	}
	if to, _, _ := m.take("p", &queueEntry{version: 1}); to.worker != "old" {
		t.Errorf("when all that hold the version are full: %q", to.worker)
	}
}

func TestEqualWorkersShareTheLoad(t *testing.T) {
	m := NewMembers(10)
	for i := range 5 {
		m.hear(fmt.Sprint(i), 100)
	}
	for n := range 50 {
		if _, wait, err := m.take("p", &queueEntry{version: 1}); wait || err != nil {
			t.Fatalf("call %d has to wait: %v", n, err)
		}
	}
	for _, w := range m.pool("p").members {
		if w.mine != 10 {
			t.Errorf("worker %s has %d of 50 batches", w.id, w.mine)
		}
	}
}

// In a random sequence of events, calls arrive, leave, end and are refused, and workers
// send heartbeats, die and fall silent. No worker ever has more batches than its
// capacity, and no call waits while there is a slot that it can use.
func TestFreeSlotsAreUsedAndCapacitiesKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var fault string
		// Rapid draws mostly small numbers; the multiplication spreads them.
		anything := rapid.Map(rapid.Uint32(), func(n uint32) int { return int(n * 2654435769 >> 16) })
		schedule := rapid.SliceOfN(anything, 1, 60).Draw(rt, "schedule")
		synctest.Test(t, func(*testing.T) { fault = (&chaos{m: NewMembers(20)}).run(schedule) })
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

// chaos is a queue with random events.
type chaos struct {
	m       *Members
	waiting []*queueEntry
	running []choice
	locals  int // free slots of the local worker
}

func (c *chaos) run(schedule []int) string {
	for i, n := range schedule {
		c.step(n%10, n/10)
		c.look()
		if fault := c.fault(); fault != "" {
			return fmt.Sprintf("after step %d (%d): %s", i, n%10, fault)
		}
	}
	return ""
}

func (c *chaos) step(what, which int) {
	worker := []string{"a", "b", "c"}[which%3]
	switch what {
	case 0, 1, 2:
		c.ask(&queueEntry{version: 1, local: which%5 == 0, excluded: [][]string{nil, nil, {"a"}, {"a", "b"}}[which%4]})
	case 3, 4:
		if len(c.running) > 0 {
			i := which % len(c.running)
			to := c.running[i]
			c.running = slices.Delete(c.running, i, i+1)
			if to.local {
				c.locals++
				c.m.Freed("p")
			} else {
				c.m.returnSlot(to.member, 1, []schema.Status{"", "", schema.StatusBusy, schema.StatusStale}[which%4])
			}
		}
	case 5:
		if len(c.waiting) > 0 {
			i := which % len(c.waiting)
			c.m.leave("p", c.waiting[i])
			c.waiting = slices.Delete(c.waiting, i, i+1)
		}
	case 6:
		c.m.Gone(worker)
	case 7:
		<-time.After(schema.BeatEvery)
		c.m.Tick(schema.BeatEvery)
	default:
		c.m.Beat(&schema.Beat{Pool: "p", Worker: worker, Capacity: which % 4, Draining: which%11 == 0, InFlight: which % 3})
	}
}

// ask makes a call ask for a slot, as often as it must look again.
func (c *chaos) ask(t *queueEntry) {
	for {
		if t.freed = c.m.freed.Load(); t.local && c.locals > 0 {
			c.locals--
			c.running = append(c.running, choice{local: true})
			return
		}
		to, wait, err := c.m.take("p", t)
		switch {
		case err != nil:
			return // it was busy at once, or there is no worker
		case to.local:
			continue
		case wait:
			c.waiting = append(c.waiting, t)
		case to.member != nil:
			c.running = append(c.running, to)
		}
		return
	}
}

// look lets calls continue that received something.
func (c *chaos) look() {
	for again := true; again; {
		again = false
		for i, t := range c.waiting {
			if len(t.got) == 0 {
				continue
			}
			c.waiting = slices.Delete(c.waiting, i, i+1)
			if to := <-t.got; to.member != nil {
				c.running = append(c.running, to)
			} else {
				c.ask(t)
			}
			again = true
			break
		}
	}
}

func (c *chaos) fault() string {
	p := c.m.pool("p")
	if len(p.waiting) != len(c.waiting) {
		return fmt.Sprintf("%d calls wait, %d are in the queue", len(c.waiting), len(p.waiting))
	}
	for _, w := range p.members {
		mine := 0
		for _, to := range c.running {
			if to.member == w {
				mine++
			}
		}
		if mine != w.mine {
			return fmt.Sprintf("worker %s has %d batches, counted are %d", w.id, mine, w.mine)
		}
	}
	for _, t := range c.waiting {
		if best, _ := p.best(t); best != nil {
			return fmt.Sprintf("a call waits, although %s is free", best.id)
		}
		if t.local && c.locals > 0 {
			return "a call waits, although the local worker is free"
		}
	}
	if !slices.IsSortedFunc(p.waiting, func(a, b *queueEntry) int { return int(a.ticket) - int(b.ticket) }) {
		return "the queue is out of order"
	}
	return ""
}

// Choosing a worker never exceeds its capacity, except if the worker has just reduced it.
func TestNoWorkerIsChosenBeyondItsCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMembers(1000)
		slots := 0
		for _, id := range []string{"a", "b", "c"} {
			capacity, others := rapid.IntRange(0, 5).Draw(t, "capacity"), rapid.IntRange(0, 5).Draw(t, "others")
			m.Beat(&schema.Beat{Pool: "p", Worker: id, Capacity: capacity, InFlight: others})
			slots += max(0, capacity-others)
		}
		for n := range 20 {
			_, wait, err := m.take("p", &queueEntry{version: 1})
			if err != nil && !errors.Is(err, ErrNoWorker) || wait != (n >= slots) {
				t.Fatalf("call %d of %d: waits %t, %v", n, slots, wait, err)
			}
		}
	})
}

// A worker that moves to another server is not dead: calls wait for it, and its closed
// connection ends no call.
func TestAWorkerThatMovesIsWaitedFor(t *testing.T) {
	m := NewMembers(10)
	m.hear("a", 1)
	m.Beat(&schema.Beat{Pool: "p", Worker: "a", Capacity: 1, Moving: true, Versions: []uint64{1}})
	c := waiting(t, m)
	m.Gone("a")
	select {
	case got := <-c.got:
		t.Fatalf("while it moves the call got %+v", got)
	default:
	}
	m.hear("a", 1)
	if got := <-c.got; got.worker != "a" {
		t.Errorf("when it is back the call got %+v", got)
	}
	m.Gone("a")
	if len(m.Pools()[0].Workers) != 0 {
		t.Error("a worker that is back cannot be reported dead")
	}
}

// Calls that wait for a worker to return are no overload: none is turned away because those
// before it have waited long, neither while no worker is there nor when one is back.
func TestCallsThatWaitForAWorkerToReturnAreNoOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMembers(100)
		ask := func() {
			t.Helper()
			c := &queueEntry{version: 1, until: time.Now().Add(10 * time.Second)}
			if _, wait, err := m.await("p", c); !wait || err != nil {
				t.Fatalf("a call waits: %v, and is turned away: %v", wait, err)
			}
		}
		for end := time.Now().Add(burst + calm); time.Now().Before(end); <-time.After(calm / 4) {
			ask()
		}
		m.hear("a", 1)
		ask()
	})
}
