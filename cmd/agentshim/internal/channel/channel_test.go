package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// world is a fabric with a queue, and a folder for texts.
type world struct {
	*bustest.Fabric

	t   *testing.T
	s   *server.Server
	dir string
	// ends is the point at which the test ends a writer; empty: it ends none.
	ends string
	// late: the test ends the writer after the fabric gave a text and before the answer arrives.
	late bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Fabric: bustest.NewFabric("f-test"), t: t, s: bustest.Start(t), dir: t.TempDir()}
	w.Matchers = map[uint64]string{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Serve(ctx, bustest.Connect(t, w.s, "fabric")); err != nil {
		t.Fatal(err)
	}
	return w
}

// lane is the queue of a writer's process.
type lane struct {
	*client.Client
	late func()
}

func (l lane) DrainOne(ctx context.Context, agent, session, event string) (*schema.DrainAnswer, error) {
	a, err := l.Client.DrainOne(ctx, agent, session, event)
	if l.late != nil {
		l.late()
		return nil, context.Canceled
	}
	return a, err
}

func (l lane) Done(ctx context.Context, event string, _ time.Duration) bool {
	return l.Ack(ctx, "a", event) == nil
}

// died is the panic with which a test ends a process at a point.
type died struct{ point string }

// write starts a writer, which runs until stop or until it dies at a point; empty: it does not die.
func (w *world) write(dies string) (stop func()) { return w.writeUntil(dies, 0) }

// writeUntil is like write, but skips the first arrivals at the point.
func (w *world) writeUntil(dies string, others int) (stop func()) {
	w.t.Helper()
	c, err := client.Connect(w.t.Context(), client.Options{InProcess: w.s})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	queue := lane{Client: c}
	if w.late {
		queue.late = cancel
	}
	writer := &Writer{Queue: queue, Agent: "a", Dir: w.dir, Stderr: io.Discard, Step: func(point string) {
		if point == w.ends {
			cancel()
		}
		if point == dies {
			if others--; others < 0 {
				panic(died{point})
			}
		}
	}}
	go func() {
		defer c.Close()
		defer func() {
			p := recover()
			if _, ok := p.(died); p != nil && !ok {
				panic(p)
			}
			if p != nil {
				cancel()
			}
		}()
		done <- writer.Run(ctx)
	}()
	return func() {
		w.t.Helper()
		cancel()
		synctest.Wait()
		select {
		case err := <-done:
			if err != nil {
				w.t.Error(err)
			}
		default:
			if dies == "" {
				w.t.Error("the writer did not end")
			}
		}
	}
}

// lies waits until there is a current text, and returns it.
func (w *world) lies() *Text {
	w.t.Helper()
	for range 2000 {
		t := &Text{}
		err := readFile(filepath.Join(w.dir, FileName), t)
		if err == nil {
			return t
		}
		if !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
	}
	w.t.Fatal("nothing came to lie there")
	return nil
}

// waiting returns the number of items without an acknowledgement, after all pending work is done.
func (w *world) waiting() int {
	<-time.After(2 * time.Second)
	w.Lock()
	defer w.Unlock()
	return len(w.Items)
}

// tell returns the text that a reader delivers after a call of a tool.
func (w *world) tell(r *Reader, tool string) string {
	content, done := r.Take(tool)
	if done != nil {
		done(true)
	}
	return content
}

func TestTextsComeOneAtATimeAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"), bustest.Item(6, "two"), bustest.Item(9, "three"))
		w.Matchers[6] = "Write|mcp__x__*"
		stop := w.write("")
		r := NewReader(w.dir, io.Discard)
		text := w.lies()
		if now := time.Now(); text.expired(now) || !text.expired(now.Add(bustest.LeaseFor)) {
			t.Errorf("it expires at %s", text.Expires)
		}
		text.Expires = nil
		if diff := cmp.Diff(&Text{Inject: Inject{"one", schema.ToolResult}, Matcher: "*", Sequence: 5}, text); diff != "" {
			t.Error(diff)
		}
		info, err := os.Stat(filepath.Join(w.dir, FileName))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		if n := w.waiting(); n != 3 {
			t.Errorf("%d of 3 wait before anybody took one", n)
		}
		<-time.After(2 * time.Minute) // longer than leases last
		if got := w.tell(r, "any"); got != "one" {
			t.Errorf("told %q", got)
		}
		if text = w.lies(); text.Inject.Content != "two" || text.Sequence != 6 {
			t.Errorf("%+v", text)
		}
		if got := w.tell(r, "Read"); got != "" {
			t.Errorf("told %q, which is for another tool", got)
		}
		if got := w.tell(r, "mcp__x__y"); got != "two" {
			t.Errorf("told %q", got)
		}
		if text = w.lies(); text.Sequence != 9 {
			t.Errorf("%+v", text)
		}
		if got := w.tell(r, "any"); got != "three" {
			t.Errorf("told %q", got)
		}
		if n := w.waiting(); n != 0 {
			t.Errorf("%d were told and still wait", n)
		}
		stop()
		bustest.Settle()
	})
}

func TestWhatNobodyTookIsTakenBackAndComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		stop := w.write("")
		w.lies()
		stop()
		if _, err := os.Stat(filepath.Join(w.dir, FileName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it still lies there: %v", err)
		}
		if n := w.waiting(); n != 1 {
			t.Errorf("%d wait", n)
		}
		stop = w.write("")
		if text := w.lies(); text.Sequence != 5 || text.Inject.Content != "one" {
			t.Errorf("%+v", text)
		}
		stop()
		bustest.Settle()
	})
}

// A writer continues where the previous one died: it delivers all texts, each once, and each
// text has a greater number than those before. The order of one source is up to the
// fabric, which is a simple one here.
func TestAWriterThatDiesLosesNothing(t *testing.T) {
	for _, point := range []string{"taken along", "written", "noted", "put there", "gone", "acknowledged"} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Put(bustest.Item(5, "one"), bustest.Item(6, "two"))
				r := NewReader(w.dir, io.Discard)
				var told []string
				var sequences []uint64
				take := func() {
					t.Helper()
					for range 1000 { // the writer may be replacing the file
						lies := w.lies()
						if text := w.tell(r, "x"); text != "" {
							sequences, told = append(sequences, lies.Sequence), append(told, text)
							return
						}
					}
					t.Fatal("nothing of what lies there is told")
				}
				first := w.write(point)
				if point == "gone" || point == "acknowledged" {
					take()
				}
				<-time.After(time.Second)
				first()
				next := w.write("")
				for len(told) < 2 {
					take()
				}
				if n := w.waiting(); n != 0 {
					t.Errorf("%d wait", n)
				}
				slices.Sort(told)
				if fmt.Sprint(told) != "[one two]" || sequences[0] >= sequences[1] {
					t.Errorf("told %q as %d", told, sequences)
				}
				next()
				bustest.Settle()
			})
		})
	}
}

// The next writer acknowledges a text that a reader took while no writer ran.
func TestWhatIsTakenWhileNoWriterLooksIsNotPutThereAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		first := w.write("put there")
		w.lies()
		first()
		if got := w.tell(NewReader(w.dir, io.Discard), "x"); got != "one" {
			t.Errorf("told %q", got)
		}
		w.Lock()
		clear(w.Leases) // the lease may also have expired; a late acknowledgement still counts
		w.Leases = map[string]bustest.Lease{w.Drains[0].EventID: {Sequences: []uint64{5}}}
		w.Unlock()
		next := w.write("")
		if n := w.waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
		next()
		bustest.Settle()
	})
}

// If a reader dies after it delivered a text and before it removed the file, the agent gets the
// text twice. The text is not lost.
func TestAReaderThatDiesTellsTwiceAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"), bustest.Item(6, "two"))
		stop := w.write("")
		w.lies()
		r := NewReader(w.dir, io.Discard)
		r.step = func(string) { panic(died{}) }
		content, done := r.Take("x")
		func() {
			defer func() { _ = recover() }()
			done(true)
		}()
		told := []string{content}
		next := NewReader(w.dir, io.Discard)
		for range 2 {
			w.lies()
			told = append(told, w.tell(next, "x"))
		}
		if fmt.Sprint(told) != "[one one two]" {
			t.Errorf("told %q", told)
		}
		stop()
		bustest.Settle()
	})
}

func TestOneReaderAtATimeTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		stop := w.write("")
		w.lies()
		first, second := NewReader(w.dir, io.Discard), NewReader(w.dir, io.Discard)
		_, done := first.Take("x")
		if got, also := second.Take("x"); also != nil {
			t.Errorf("both tell %q", got)
		}
		done(false) // it could not
		if got := w.tell(second, "x"); got != "one" {
			t.Errorf("told %q", got)
		}
		if got := w.tell(first, "x"); got != "" {
			t.Errorf("told %q again", got)
		}
		stop()
		bustest.Settle()
	})
}

// Sequences keep growing although another fabric starts at 1.
func TestAnotherFabricsTextsAreNotTakenForOldOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(50, "one"))
		stop := w.write("")
		r := NewReader(w.dir, io.Discard)
		w.lies()
		if got := w.tell(r, "x"); got != "one" {
			t.Errorf("told %q", got)
		}
		if n := w.waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
		w.Lock()
		w.ID = "f-other"
		w.Unlock()
		w.Put(bustest.Item(1, "anew"))
		if text := w.lies(); text.Sequence != 51 {
			t.Errorf("%+v", text)
		}
		if got := w.tell(r, "x"); got != "anew" {
			t.Errorf("told %q", got)
		}
		stop()
		bustest.Settle()
	})
}

func TestAFolderHasOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := w.write("")
		synctest.Wait()
		second := &Writer{Agent: "b", Dir: w.dir, Stderr: io.Discard}
		if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another process writes") {
			t.Error(err)
		}
		stop()
		bustest.Settle()
	})
}
