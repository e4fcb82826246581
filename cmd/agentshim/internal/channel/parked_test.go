package channel

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// next calls a tool every 100 ms until it carries a text, for at most 40 s, which is longer than a lease.
func (w *world) next(r *Reader, tool string) string {
	for range 400 {
		if text := w.tell(r, tool); text != "" {
			return text
		}
		<-time.After(100 * time.Millisecond)
	}
	return ""
}

// A text for a tool that the agent does not call delays no other text.
func TestATextForAnotherToolHoldsUpNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"), bustest.Item(6, "two"), bustest.Item(7, "three"), bustest.Item(9, "four"))
		w.Matchers[5], w.Matchers[6] = "never", "seldom"
		stop := w.write("")
		r := NewReader(w.dir, io.Discard)
		var told []string
		for range 2 {
			told = append(told, w.next(r, "any"))
		}
		<-time.After(5 * time.Minute) // longer than leases last
		told = append(told, w.next(r, "seldom"))
		w.Put(bustest.Item(10, "five"))
		told = append(told, w.next(r, "any"), w.next(r, "never"))
		if fmt.Sprint(told) != "[three four two five one]" {
			t.Errorf("told %q", told)
		}
		if n := w.waiting(); n != 0 {
			t.Errorf("%d were told and still wait", n)
		}
		stop()
		bustest.Settle()
	})
}

// If a writer dies while texts wait for a tool call, no text is lost or delivered twice.
func TestAWriterThatDiesLosesNothingThatIsParked(t *testing.T) {
	for _, point := range []string{"written", "noted", "put there", "gone", "acknowledged"} {
		for nth := range 4 {
			t.Run(fmt.Sprint(point, " ", nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.Put(bustest.Item(5, "one"), bustest.Item(6, "two"), bustest.Item(7, "three"))
					w.Matchers[5], w.Matchers[6] = "never", "seldom"
					first := w.writeUntil(point, nth)
					r := NewReader(w.dir, io.Discard)
					var told []string
					for range 40 {
						if text := w.tell(r, "any"); text != "" {
							told = append(told, text)
						}
						<-time.After(100 * time.Millisecond)
					}
					first()
					next := w.write("")
					for i := range 300 { // longer than a lease: texts with a lease that no writer stored are due again
						if text := w.tell(r, []string{"never", "seldom"}[i%2]); text != "" {
							told = append(told, text)
						}
						<-time.After(150 * time.Millisecond)
					}
					if slices.Sort(told); fmt.Sprint(told) != "[one three two]" {
						t.Errorf("told %q", told)
					}
					if n := w.waiting(); n != 0 {
						t.Errorf("%d wait", n)
					}
					next()
					bustest.Settle()
				})
			})
		}
	}
}

// Third-party readers support no alternatives in a matcher, so each alternative has its turn.
func TestEachPartOfAMatcherHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		w.Matchers[5] = "Write | Edit"
		stop := w.write("")
		seen := map[string]int{}
		for range 60 {
			text := w.lies()
			seen[text.Matcher]++
			if text.Matchers != "Write | Edit" || text.Sequence != 5 {
				t.Errorf("%+v", text)
			}
			<-time.After(100 * time.Millisecond)
		}
		if len(seen) != 2 || seen["Write"] < 20 || seen["Edit"] < 20 {
			t.Errorf("it lies there for %v", seen)
		}
		w.lies()
		if got := w.tell(NewReader(w.dir, io.Discard), "Edit"); got != "one" {
			t.Errorf("told %q", got)
		}
		stop()
		bustest.Settle()
	})
}

// A text without a reader is due at once for the agent's next turn, and not only when its lease ends.
func TestWhatNobodyTookIsDueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"), bustest.Item(6, "two"))
		w.Matchers[5] = "never"
		stop := w.write("")
		w.lies()
		<-time.After(2 * time.Second) // the writer has leased both
		stop()
		w.due("one\n\ntwo")
	})
}

// The same applies to a writer that ends while there is no current text.
func TestWhatIsParkedIsDueAtOnceWhenAWriterEndsBetweenTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"), bustest.Item(6, "two"))
		w.Matchers[5], w.ends = "never", "acknowledged"
		stop := w.write("")
		if got := w.next(NewReader(w.dir, io.Discard), "any"); got != "two" {
			t.Fatalf("told %q", got)
		}
		<-time.After(time.Second) // the writer sees that the text was taken
		stop()
		w.due("one")
	})
}

func TestATextThatComesTooLateForAWriterIsDueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		w.late = true
		stop := w.write("")
		<-time.After(time.Second)
		stop()
		w.due("one")
	})
}

// due drains the queue as another client, and compares the content.
func (w *world) due(want string) {
	w.t.Helper()
	c, err := client.Connect(w.t.Context(), client.Options{InProcess: w.s})
	if err != nil {
		w.t.Fatal(err)
	}
	if a, err := c.Drain(w.t.Context(), "a", ""); err != nil || a.Content != want {
		w.t.Errorf("%+v, %v", a, err)
	}
	c.Close()
	bustest.Settle()
}

// A reader does not deliver an expired text: the fabric may have delivered it elsewhere. That also applies
// to a text of another program.
func TestATextThatExpiredIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		first := w.write("put there")
		w.lies()
		first()
		<-time.After(fileFor + time.Second)
		r := NewReader(w.dir, io.Discard)
		if got := w.tell(r, "any"); got != "" {
			t.Errorf("told %q", got)
		}
		next := w.write("")
		if got := w.next(r, "any"); got != "one" {
			t.Errorf("told %q", got)
		}
		if n := w.waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
		next()
		for expires, want := range map[string]string{`1`: "", `"1.5"`: "", `null`: "old", `"soon"`: "old", `true`: "old", `1e12`: "old"} {
			if err := os.WriteFile(filepath.Join(w.dir, FileName), []byte(`{"inject":{"content":"old"},"tool_matcher":"*","sequence":99,"expires_at":`+expires+`}`), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := w.tell(NewReader(w.dir, io.Discard), "any"); got != want {
				t.Errorf("what expires at %s: told %q", expires, got)
			}
			if folder(w.dir).has(FileName) {
				t.Errorf("what expires at %s still lies there", expires)
			}
		}
		bustest.Settle()
	})
}

// Third-party readers remove expired texts unread. The fabric delivers a text again if that may have
// happened.
func TestWhatMayHaveGoneUnreadComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		first := w.write("put there")
		w.lies()
		first()
		<-time.After(fileFor + time.Second)
		if err := os.Remove(filepath.Join(w.dir, FileName)); err != nil {
			t.Fatal(err)
		}
		next := w.write("")
		if got := w.next(NewReader(w.dir, io.Discard), "any"); got != "one" {
			t.Errorf("told %q", got)
		}
		next()
		bustest.Settle()
	})
}

// An item with an expiry is the current text until then at the latest.
func TestATextLiesThereNoLongerThanItsItemMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Put(bustest.Item(5, "one"))
		w.Expiries = map[uint64]time.Duration{5: 40 * time.Second}
		stop := w.write("")
		w.lies()
		<-time.After(39 * time.Second)
		if text := w.lies(); !text.expired(time.Now().Add(2 * time.Second)) {
			t.Errorf("it expires at %s", text.Expires)
		}
		w.Lock()
		w.Items = nil // the fabric drops it at its expiry
		w.Unlock()
		<-time.After(2 * time.Second)
		if folder(w.dir).has(FileName) {
			t.Error("it still lies there")
		}
		w.Lock()
		if !slices.ContainsFunc(w.Acks, func(a schema.AckRequest) bool { return a.Release }) {
			t.Errorf("%+v", w.Acks)
		}
		w.Unlock()
		stop()
		bustest.Settle()
	})
}

// The first hook removes a file without a valid text, and later texts do not wait for it.
func TestWhatIsNoTextHoldsUpNone(t *testing.T) {
	for name, garbage := range map[string]string{
		"no JSON": `inject`, "a list": `[]`, "nothing": ``, "a text that is a number": `{"inject":{"content":5}}`, "an invalid sequence": `{"inject":{"content":"x"},"sequence":"x"}`,
		"a matcher that is a number": `{"inject":{"content":"x"},"tool_matcher":7}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				path := filepath.Join(w.dir, FileName)
				lay := func() {
					t.Helper()
					if err := os.WriteFile(path, []byte(garbage), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				lay()
				var said strings.Builder
				if got := w.tell(NewReader(w.dir, &said), "any"); got != "" || folder(w.dir).has(FileName) || !strings.Contains(said.String(), "agentshim removes the file") {
					t.Errorf("told %q, and said %q", got, said.String())
				}
				lay()
				w.Put(bustest.Item(5, "one"))
				stop := w.write("")
				<-time.After(2 * time.Second)
				if got := w.next(NewReader(w.dir, io.Discard), "any"); got != "one" {
					t.Errorf("told %q", got)
				}
				stop()
				bustest.Settle()
			})
		})
	}
}
