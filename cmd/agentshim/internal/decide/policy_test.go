package decide_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

func TestWhileNobodyAnswersTheLastKnownPolicyDecides(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.gone()
		deny := w.wants("Bash", schema.Deny, "refused without a verdict (the hook guards-Bash guards it, policy of config version 7")
		for _, part := range []string{"the fabric is unreachable", "guards-Bash", "config version 7", "known since 20", "Start the broker", "agentshim doctor"} {
			if !strings.Contains(deny.Verdict.Reason, part) {
				t.Errorf("the reason does not say %q: %s", part, deny.Verdict.Reason)
			}
		}
		if deny.Unjudged == nil {
			t.Error("it counts as judged")
		}
		w.wants("Read", schema.None, "allowed without a verdict (no fail-closed hook guards it, policy of config version 7)")
		after := decide.Question{Event: &schema.Event{HookType: schema.PostToolUse, AgentID: "a", ToolName: "Read"}, Unreachable: decide.UnreachableAllow}
		if got, _ := w.asks(after); got.Verdict.Decision != schema.None || len(got.Verdict.HookErrors) != 2 {
			t.Errorf("what has happened already: %+v", got.Verdict)
		}
		unknown := calls("")
		unknown.Unreadable = os.ErrInvalid
		got, said := w.asks(unknown)
		if got.Verdict.Decision != schema.Deny {
			t.Errorf("a call whose tool nobody knows: %+v", got.Verdict)
		}
		if !strings.Contains(said, os.ErrInvalid.Error()+"; the fabric is unreachable") || strings.Count(said, "\n") != 1 || !errors.Is(got.Unjudged, os.ErrInvalid) || !errors.Is(got.Unjudged, client.ErrUnreachable) {
			t.Errorf("one line does not say both causes: %q, %v", said, got.Unjudged)
		}
	})
}

func TestWithoutAPolicyTheFlagDecides(t *testing.T) {
	within(t, func(w *world) {
		w.gone()
		w.wants("Bash", schema.None, "allowed without a verdict (--unreachable allow): no policy is known")
		q := calls("Read")
		q.Unreachable = decide.UnreachableDeny
		if got, said := w.asks(q); got.Verdict.Decision != schema.Deny || !strings.Contains(said, "refused without a verdict (--unreachable deny): no policy is known") {
			t.Errorf("%+v, %s", got.Verdict, said)
		}
	})
}

func TestThePolicyFollowsTheActiveVersion(t *testing.T) {
	within(t, func(w *world) {
		for range 3 {
			w.wants("Read", schema.None, "")
		}
		if w.Policies != 1 {
			t.Errorf("asked for %d times while nothing changed", w.Policies)
		}
		w.becomes(8, guarding("Read"))
		w.wants("Read", schema.None, "")
		w.gone()
		w.wants("Bash", schema.None, "version 8")
		w.wants("Read", schema.Deny, "version 8")
		w.back()
		// An operator restored an older data directory of the fabric: its version counts again.
		w.becomes(3, guarding("Write"))
		w.wants("Read", schema.None, "")
		w.gone()
		w.wants("Write", schema.Deny, "version 3")
		w.wants("Read", schema.None, "version 3")
	})
}

// A forged policy changes nothing.
func TestAForgedPolicyIsNotTakenOver(t *testing.T) {
	var old *schema.PolicyAnswer
	for name, c := range map[string]struct {
		says  string
		forge func(w *world, a *schema.PolicyAnswer) *schema.PolicyAnswer
	}{
		"another key signs it": {"another key", func(w *world, _ *schema.PolicyAnswer) *schema.PolicyAnswer {
			w.Signer = bustest.Signer(9)
			return answer(w)
		}},
		"a part is left out": {"not signed", func(_ *world, a *schema.PolicyAnswer) *schema.PolicyAnswer {
			a.Document = strings.Replace(a.Document, "8", "9", 1)
			return a
		}},
		"another fabric's": {"belongs to another fabric", func(w *world, _ *schema.PolicyAnswer) *schema.PolicyAnswer {
			w.ID = "f-2"
			return answer(w)
		}},
		"one of before, recorded": {"older than the stored one", func(*world, *schema.PolicyAnswer) *schema.PolicyAnswer { return old }},
		"nothing":                 {"another key", func(*world, *schema.PolicyAnswer) *schema.PolicyAnswer { return &schema.PolicyAnswer{} }},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(w *world) {
				w.becomes(6)
				old = answer(w)
				w.becomes(7, guarding("Bash"))
				w.wants("Read", schema.None, "")
				w.becomes(8)
				w.Answer = func(verb string, m *nats.Msg) bool {
					if verb == schema.VerbPolicy {
						bustest.Respond(m, c.forge(w, answer(w)))
					}
					return verb == schema.VerbPolicy
				}
				w.wants("Read", schema.None, c.says)
				w.gone()
				w.wants("Bash", schema.Deny, "version 7")
			})
		})
	}
}

// A process that can write into the state folder can have calls refused, but cannot make any pass.
func TestAKeptPolicyThatSomebodyChangedLetsNothingPass(t *testing.T) {
	for name, c := range map[string]struct {
		digest func(signature, key, document string) string // nil: the digest stays
		says   string
		heals  bool // at the next call that the fabric answers
	}{
		"its digest, too": {digestOf, "not signed by the key", false},
		"not its digest":  {nil, "not a file of agentshim", true},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(w *world) {
				w.becomes(7, guarding("Bash"))
				w.wants("Read", schema.None, "")
				path := w.file("f-1/policy")
				head, document, _ := strings.Cut(w.read(path), "\n")
				parts := strings.Fields(head)
				document = strings.Replace(document, "Bash", "Bush", 1)
				if c.digest != nil {
					parts[2] = c.digest(parts[0], parts[1], document)
				}
				w.write(path, strings.Join(parts, " ")+"\n"+document)
				w.gone()
				w.wants("Read", schema.Deny, c.says)
				w.wants("Bash", schema.Deny, c.says)
				w.back()
				w.wants("Read", schema.None, "")
				w.gone()
				if c.heals {
					w.wants("Bash", schema.Deny, "version 7")
				} else {
					w.wants("Bash", schema.Deny, c.says)
				}
			})
		})
	}
}

// digestOf returns the digest in the file of a policy.
func digestOf(signature, key, document string) string {
	h := sha256.New()
	for _, part := range []string{signature, key} {
		raw, _ := base64.StdEncoding.DecodeString(part)
		h.Write(raw)
	}
	h.Write([]byte(document))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func answer(w *world) *schema.PolicyAnswer {
	a, err := w.Policy("another one's nonce")
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func TestAnotherKeyIsBelievedWhenSomebodySaysSo(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.Signer = bustest.Signer(2)
		w.becomes(8, guarding("Read"))
		w.wants("Read", schema.None, "'agentshim policy reset' forgets the old key")
		if _, err := shimstate.Folder(w.state).Forget(""); err != nil {
			t.Fatal(err)
		}
		w.wants("Read", schema.None, "")
		w.gone()
		w.wants("Read", schema.Deny, "version 8")
	})
}

func TestANewFabricHasAKeyOfItsOwn(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		w.gone()
		w.begin("f-2", 2)
		w.becomes(1, guarding("Read"))
		w.wants("Bash", schema.None, "answers at the URL where f-1 answered before")
		if keys, _ := filepath.Glob(filepath.Join(w.state, "shim", "f-*", "key")); len(keys) != 2 {
			t.Errorf("the keys %v", keys)
		}
	})
}

func TestAPolicyFileThatWasPutBackIsReplaced(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "")
		path := w.file("f-1/policy")
		before := w.read(path)
		w.becomes(8, guarding("Write"))
		w.wants("Read", schema.None, "")
		after := w.read(path)
		w.write(path, before)
		w.wants("Read", schema.None, "")
		if w.read(path) != after {
			t.Error("the file of before stays")
		}
	})
}

// If the stored policy is unreadable, no call passes, also with --unreachable allow, which is for
// shims that never knew a policy.
func TestWithAPolicyThatCanNotBeReadNothingPasses(t *testing.T) {
	const none = "\x00" // the file does not exist
	for name, c := range map[string]struct {
		file, content, says string
		heals               bool
	}{
		"an empty policy":     {"f-1/policy", "", "is unusable", true},
		"no policy any more":  {"f-1/policy", none, "is missing", true},
		"junk":                {"f-1/policy", "\x00\x01\n", "not a file of agentshim", true},
		"a large file":        {"f-1/policy", strings.Repeat("x", 1<<20), "more than", true},
		"no key":              {"f-1/key", "", "contains no key; delete the file", false},
		"a short key":         {"f-1/key", "QUJD", "contains no key; delete the file", false},
		"no fabric was there": {".reached/*", "not a token!", "does not name a fabric", true},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(w *world) {
				w.wants("Read", schema.None, "")
				path := w.file(c.file)
				if w.write(path, c.content); c.content == none {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				}
				w.gone()
				w.wants("Read", schema.Deny, c.says)
				after := decide.Question{Event: &schema.Event{HookType: schema.PostToolUse, AgentID: "a", ToolName: "Read"}, Unreachable: decide.UnreachableAllow}
				if got, _ := w.asks(after); got.Verdict.Decision != schema.None || len(got.Verdict.HookErrors) != 2 {
					t.Errorf("what has happened already: %+v", got.Verdict)
				}
				w.back()
				heard := ""
				if !c.heals {
					heard = c.says
				}
				w.wants("Read", schema.None, heard)
				w.gone()
				if c.heals {
					w.wants("Bash", schema.Deny, "version 7")
					w.wants("Read", schema.None, "version 7")
				} else {
					w.wants("Read", schema.Deny, c.says)
				}
			})
		})
	}
}

// A shim that names no fabric uses the one that the machine's daemon reaches, wherever that is. The
// policy of that fabric therefore counts for the shim when both are gone.
func TestThePolicyOfTheDaemonCountsForThoseWhoNameNoFabric(t *testing.T) {
	within(t, func(w *world) {
		w.wants("Read", schema.None, "") // the command line names the fabric, and no daemon runs yet
		var to said
		link := w.link(&to)
		link.Unnamed = true
		daemon := decide.NewResident(link)
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		daemon.Ask(ctx, calls("Read"))
		synctest.Wait()
		daemon.Close()
		w.gone()
		link.URL = "nats://127.0.0.1:4222" // no fabric ever answered at this URL
		for unnamed, want := range map[bool]schema.Decision{true: schema.Deny, false: schema.None} {
			link.Unnamed = unnamed
			j := decide.New(link)
			if got := j.Ask(ctx, calls("Bash")); got.Verdict.Decision != want {
				t.Errorf("unnamed %v: %+v", unnamed, got.Verdict)
			}
			j.Close()
		}
	})
}

// A resident judge gives no verdict before it has requested the policy: the fabric may be gone as
// soon as the agent has the verdict.
func TestTheFirstVerdictComesWithThePolicy(t *testing.T) {
	within(t, func(w *world) {
		w.Answer = func(verb string, _ *nats.Msg) bool {
			if verb == schema.VerbPolicy {
				<-time.After(100 * time.Millisecond)
			}
			return false
		}
		var to said
		j := decide.NewResident(w.link(&to))
		defer j.Close()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		j.Ask(ctx, calls("Read"))
		w.gone()
		if got := j.Ask(ctx, calls("Bash")); got.Verdict.Decision != schema.Deny {
			t.Errorf("%+v", got.Verdict)
		}
	})
}

// A process that ends after a call waits for its first policy, because the next call might find none. For a
// later policy, it waits no longer than for its other work.
func TestTheFirstShimEndsWithThePolicy(t *testing.T) {
	within(t, func(w *world) {
		takes := 500 * time.Millisecond
		w.Answer = func(verb string, _ *nats.Msg) bool {
			if verb == schema.VerbPolicy {
				<-time.After(takes)
			}
			return false
		}
		w.asks(calls("Read"))
		w.becomes(8)
		began := time.Now()
		w.asks(calls("Read"))
		if took := time.Since(began); took >= takes {
			t.Errorf("a shim that knew a policy waited %v for the next one", took)
		}
		w.gone()
		w.wants("Bash", schema.Deny, "policy of config version 7")
	})
}

// A running judge also uses a policy that another shim stores.
func TestAPolicyThatCameLaterCounts(t *testing.T) {
	within(t, func(w *world) {
		var to said
		early := decide.NewResident(w.link(&to))
		defer early.Close()
		w.gone()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		if got := early.Ask(ctx, calls("Bash")); got.Verdict.Decision != schema.None {
			t.Errorf("before anybody knew a policy: %+v", got.Verdict)
		}
		w.back()
		w.wants("Read", schema.None, "")
		w.gone()
		if got := early.Ask(ctx, calls("Bash")); got.Verdict.Decision != schema.Deny {
			t.Errorf("after: %+v", got.Verdict)
		}
	})
}

func TestThePayloadGoesAlongIfSomeHookNeedsItOrNobodyKnows(t *testing.T) {
	within(t, func(w *world) {
		q := calls("Read")
		q.Native = []byte(`{"its":"own"}`)
		var got []string
		sent := func(q decide.Question) {
			w.asks(q)
			w.Lock()
			defer w.Unlock()
			e, err := schema.ReadEvent(w.Asked[len(w.Asked)-1].Body)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Native)
		}
		sent(q) // no policy is known yet
		sent(q)
		w.becomes(8, schema.PolicyHook{Hook: "n", Event: schema.PreToolUse, Matcher: "Write", Native: true})
		sent(q)
		sent(q)
		other := calls("Write")
		other.Native = q.Native
		sent(other)
		w.state = ""
		q.Native = []byte(strings.Repeat("x", schema.MaxEvent/2))
		sent(q) // a larger event could exceed the limit
		if want := []string{`{"its":"own"}`, "", "", "", `{"its":"own"}`, ""}; !slices.Equal(got, want) {
			t.Errorf("sent %.200q, want %q", got, want)
		}
	})
}

// Without a usable state folder, the fabric still judges calls, and the shim warns at once. When the
// fabric is gone, no call passes, because an earlier policy may have been lost.
func TestWithoutAFolderNothingPassesUnjudged(t *testing.T) {
	within(t, func(w *world) {
		file := filepath.Join(t.TempDir(), "file")
		w.write(file, "no folder")
		w.state = filepath.Join(file, "below")
		w.wants("Read", schema.None, "storing the policy of the fabric")
		w.gone()
		_, said := w.asks(calls("Bash"))
		for _, part := range []string{"refused without a verdict (agentshim cannot store a policy)", "not a directory", "name another folder with --state", "the fabric will not learn of it"} {
			if !strings.Contains(said, part) {
				t.Errorf("it does not say %q: %s", part, said)
			}
		}
		w.state = ""
		w.wants("Bash", schema.Deny, "found no folder that only this user can write; name one with --state, or set HOME")
		w.back()
		w.wants("Read", schema.None, "while no fabric answers, agentshim refuses every call")
	})
}
