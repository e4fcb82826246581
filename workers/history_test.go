package workers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// partMap is a store of conversations.
type partMap struct {
	mu    sync.Mutex // guards the fields below
	parts map[string][]byte
	asked int
	lies  bool
}

func (s *partMap) Part(_ context.Context, digest string, offset int64) (data []byte, size int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	part, ok := s.parts[digest]
	switch {
	case !ok:
		return nil, 0, errors.New("there is no such object")
	case s.lies:
		return bytes.Repeat([]byte("x"), len(part)), int64(len(part)), nil
	}
	return part[offset:min(int64(len(part)), offset+7)], int64(len(part)), nil // in small steps
}

// ref stores parts and returns a reference to them.
func (s *partMap) ref(parts ...string) string {
	var all []schema.Object
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p))
		o := schema.Object{Digest: "sha256-" + hex.EncodeToString(sum[:]), Size: int64(len(p))}
		s.parts[o.Digest] = []byte(p)
		all = append(all, o)
	}
	return schema.HistoryRef(all)
}

// asking returns a batch whose event has that reference and that end of the conversation.
func asking(ref, end string, hooks ...int) *schema.Batch {
	b := batch(hooks...)
	b.Body = fmt.Appendf(nil, `{"tool_name":"Bash","history_ref":%q,"history":%s}`, ref, end)
	return b
}

func needing(words string) schema.Hook {
	h := hook(words)
	h.Needs = []string{schema.NeedHistory}
	return h
}

// sight records the conversations that handlers read.
type sight struct {
	mu  sync.Mutex // guards all
	all []string
}

// handler records the conversation of its event.
func (s *sight) handler(_ context.Context, e *schema.Event) (schema.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e.HistoryRef+string(e.History))
	return schema.Result{}, nil
}

func TestOnlyHooksThatNeedTheConversationGetIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &partMap{parts: map[string][]byte{}}
		var saw, others sight
		w := newWorker(library{"needs": saw.handler, "too": saw.handler, "not": others.handler},
			config(needing("needs readonly"), needing("too"), hook("not")), func(o *workers.Options) { o.Parts = s })
		for _, c := range []struct{ ref, end, want string }{
			{"", `[]`, `[]`},
			{"", `[{"n":1}]`, `[{"n":1}]`},
			{s.ref("{\"n\":1}\n{\"n\":2}\n"), `[]`, `[{"n":1},{"n":2}]`},
			{s.ref("{\"n\":1}\n{\"n\":2}\n", "{\"n\":3}\n"), `[ {"n":4} , {"n":5} ]`, `[{"n":1},{"n":2},{"n":3},{"n":4} , {"n":5}]`},
			{s.ref("{\"n\":\"a long", " one\"}\n"), `[{"n":2}]`, `[{"n":"a long one"},{"n":2}]`},
			{s.ref("{\"n\":1}\n", "{\"n\":", "[\n]}\n"), `[]`, ""}, // with a line feed inside
			{"/home/dev/transcript.jsonl", `null`, `/home/dev/transcript.jsonl`},
		} {
			saw.all, others.all = nil, nil
			r := w.Run(t.Context(), asking(c.ref, c.end, 0, 1, 2))
			if c.want == "" {
				if kinds(r) != "0:error 1:error 2:ok" || len(saw.all) > 0 {
					t.Errorf("%s: %s, %q", c.ref, kinds(r), saw.all)
				}
				continue
			}
			if diff := cmp.Diff([]string{c.want, c.want}, saw.all); diff != "" {
				t.Errorf("%s: %s\n%s", c.ref, kinds(r), diff)
			}
			want := ""
			if schema.HistoryFile(c.ref) {
				want = c.ref
			}
			if diff := cmp.Diff([]string{want}, others.all); diff != "" {
				t.Errorf("%s: what a hook sees that does not need it:\n%s", c.ref, diff)
			}
		}
	})
}

// A shim that does not know which hooks need the runtime's payload sends it with an
// agent's first call. The facts of the call are the worker's, not those that an agent sends.
func TestHooksGetOnlyWhatTheyNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		saw := map[string]string{}
		handler := func(name string) func(context.Context, *schema.Event) (schema.Result, error) {
			return func(_ context.Context, e *schema.Event) (schema.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				saw[name] = e.ToolName + e.Native + string(e.History) + string(e.Action)
				return schema.Result{}, nil
			}
		}
		native := hook("needs")
		native.Needs = []string{schema.NeedNative}
		facts := hook("action")
		facts.Needs = []string{schema.NeedAction}
		w := newWorker(library{"needs": handler("needs"), "not": handler("not"), "history": handler("history"), "action": handler("action")},
			config(native, hook("not"), needing("history"), facts))
		b := batch(0, 1, 2, 3)
		b.Body = []byte(`{"tool_name":"Bash","tool_input":{"command":"id"},"native":"{}","history":[{"n":1}],"action":{"kind":"forged"}}`)
		if r := w.Run(t.Context(), b); kinds(r) != "0:ok 1:ok 2:ok 3:ok" {
			t.Error(kinds(r))
		}
		if diff := cmp.Diff(map[string]string{"needs": "Bash{}", "not": "Bash", "history": `Bash[{"n":1}]`, "action": `Bash{"kind":"shell","commands":[{"name":"id"}]}`}, saw); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAPartIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &partMap{parts: map[string][]byte{}}
		var saw sight
		w := newWorker(library{"needs": saw.handler, "too": saw.handler}, config(needing("needs readonly"), needing("too readonly")),
			func(o *workers.Options) { o.Parts = s })
		b := asking(s.ref("{\"n\":1}\n"), `[]`, 0, 1) // two steps of seven bytes
		for range 3 {
			w.Run(t.Context(), b)
		}
		if s.asked != 2 || len(saw.all) != 6 {
			t.Errorf("%d requests, and %d hooks saw it", s.asked, len(saw.all))
		}
	})
}

// If the conversation cannot be fetched, the hook fails, and its failure policy decides.
func TestAHookWithoutItsConversationFails(t *testing.T) {
	gone := &partMap{parts: map[string][]byte{}}
	ref := gone.ref("{\"n\":1}\n")
	clear(gone.parts)
	lying := &partMap{parts: map[string][]byte{}, lies: true}
	lying.ref("{\"n\":1}\n")
	for name, c := range map[string]struct {
		ref   string
		parts workers.Parts
		want  string
	}{
		"its part is gone":         {ref, gone, "there is no such object"},
		"its part is another one":  {ref, lying, "does not match its digest"},
		"it was not stored":        {schema.HistoryLost + "the store is full", gone, "the store is full"},
		"the ref is junk":          {"objects:sha256-1/2", gone, "a part is"},
		"there is no way to it":    {ref, nil, "Options.Parts"},
		"its part has another end": {strings.Replace(ref, "/8", "/9", 1), &partMap{parts: map[string][]byte{strings.TrimSuffix(strings.TrimPrefix(ref, "objects:"), "/8"): []byte("{\"n\":1}\n")}}, "does not have the 9 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var saw sight
				w := newWorker(library{"needs": saw.handler}, config(needing("needs")), func(o *workers.Options) { o.Parts = c.parts })
				r := w.Run(t.Context(), asking(c.ref, `[{"n":2}]`, 0))
				if kinds(r) != "0:error" || len(saw.all) > 0 || !strings.Contains(r.Outcomes[0].Error, c.want) ||
					!strings.Contains(r.Outcomes[0].Error, schema.HistoryMissing) {
					t.Errorf("%+v; it saw %q", r.Outcomes, saw.all)
				}
			})
		})
	}
}

// slowStore is a store that answers only callers who wait long.
type slowStore struct{ begun atomic.Int64 }

func (s *slowStore) Part(ctx context.Context, _ string, _ int64) ([]byte, int64, error) {
	s.begun.Add(1)
	<-ctx.Done()
	return nil, 0, context.Cause(ctx)
}

// A fetch outlives its caller, because others may need the same part. Therefore a call
// whose time is over starts no further fetches.
func TestACallPastItsDeadlineStartsNoFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, names := &slowStore{}, &partMap{parts: map[string][]byte{}}
		var parts []string
		for i := range 200 {
			parts = append(parts, fmt.Sprintf("{\"n\":%d}\n", i))
		}
		var saw sight
		w := newWorker(library{"needs": saw.handler}, config(needing("needs")), func(o *workers.Options) { o.Parts = s })
		b := asking(names.ref(parts...), `[]`, 0)
		b.Left = time.Second
		if r := w.Run(t.Context(), b); kinds(r) != "0:deadline" {
			t.Errorf("%+v", r.Outcomes)
		}
		synctest.Wait()
		if n := s.begun.Load(); n == 0 || n > 16 {
			t.Errorf("%d fetches began", n)
		}
		<-time.After(time.Minute) // they end by themselves
	})
}
