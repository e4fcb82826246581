package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// withstands checks the rules for any payload: the dialect returns a call, does not panic, returns no exit code 2
// without a message, and never answers a denial so that the runtime reads an allow.
func withstands(t testing.TB, runtime string, d dialect.Dialect, in dialect.Input) (c *dialect.Call) {
	t.Helper()
	c, err := d.Decode(in)
	if c == nil {
		t.Fatalf("%s: no call comes of %q", runtime, in.Payload)
	}
	if c.Event.HookType != c.Moment.Event {
		t.Fatalf("%s: the moment %s comes with the event %q: %q", runtime, c.Moment.Name, c.Event.HookType, in.Payload)
	}
	if in.Moment.Can[dialect.Deny] != dialect.Impossible && c.Moment.Can[dialect.Deny] == dialect.Impossible && !differs(c) {
		t.Fatalf("%s: what can be refused at %s passes for %s: %q", runtime, in.Moment.Name, c.Moment.Name, in.Payload)
	}
	if c.Faulty = err != nil; c.Faulty && c.Moment.Name == "" {
		c.Moment, _ = dialect.At(d, schema.PreToolUse) // an unreadable payload counts as a tool call, which policies guard most
		c.Event.HookType = c.Moment.Event
	}
	if _, err := schema.Marshal(&c.Event); err != nil {
		t.Fatalf("%s: what comes of %q cannot be sent: %v", runtime, in.Payload, err)
	}
	reads := readers()[runtime]
	for _, n := range verdicts(c.Moment.Event) {
		said, _, _ := dialect.Express(c.Moment, &n.verdict)
		a, err := d.Encode(c, said)
		if err != nil {
			t.Fatalf("%s, %s: %v: %q", runtime, n.name, err, in.Payload)
		}
		if a.Exit == 2 && strings.TrimSpace(a.Stderr) == "" {
			t.Fatalf("%s, %s: exit code 2 without a word: %q", runtime, n.name, in.Payload)
		}
		if passes(c, &n.verdict, reads(c, a)) {
			t.Fatalf("%s, %s: what must not run as it is does: %q is answered with %s", runtime, n.name, in.Payload, bytesOf(a))
		}
	}
	return c
}

// passes reports whether a call, or a prompt, runs unchanged against the verdict.
func passes(c *dialect.Call, v *schema.Verdict, o outcome) bool {
	if o.refused || c.Moment.Can[dialect.Deny] == dialect.Impossible || c.Moment.Event.Blocking() != schema.Deny {
		return false
	}
	asks := v.Decision == schema.Ask && c.Moment.Can[dialect.Ask] == dialect.Native
	switch {
	case v.Terminate != nil, v.Decision == schema.Deny, v.Decision == schema.Stop, v.Decision == schema.Fail, v.Decision == schema.Ask && !asks:
		return true
	case asks && o.approved:
		return true
	case v.UpdatedInput != nil && o.input == "":
		return at(members(c.Event.ToolInput), "command") != "ls" // the input is already the rewritten one
	}
	return asks && !o.asked && !strings.EqualFold(c.Moment.Name, "PermissionRequest") // at a moment at which the runtime asks a person anyway
}

// differs reports whether a call has another form of its protocol with fewer abilities.
func differs(c *dialect.Call) bool { return c.Form != "" }

// variants returns the ways in which a payload may reach a hook: with and without its event on the command line,
// and from another program.
func variants(x dialect.Input, moments []dialect.Moment, r *rand.Rand) dialect.Input {
	switch r.IntN(4) {
	case 0:
		x.Moment = dialect.Moment{}
	case 1:
		x.Moment = moments[r.IntN(len(moments))]
	}
	if r.IntN(4) == 0 {
		x.Env = func(string) string { return "1" }
	}
	return x
}

// recordedInputs returns recorded payloads, by runtime. There are no recordings in the fabric's own
// form. The events of all other runtimes take their place.
func recordedInputs(t testing.TB) (byRuntime map[string][]dialect.Input, all []dialect.Input) {
	t.Helper()
	byRuntime = map[string][]dialect.Input{}
	for _, x := range exchanges(t) {
		in := x.input(t)
		byRuntime[x.runtime] = append(byRuntime[x.runtime], in)
		all = append(all, in)
		if c, err := runtimeOf(t, x.runtime).Decode(in); err == nil && c.Event.HookType != "" {
			event, err := schema.Marshal(&c.Event)
			if err != nil {
				t.Fatal(err)
			}
			byRuntime["generic"] = append(byRuntime["generic"], dialect.Input{Payload: event})
		}
	}
	return byRuntime, all
}

// TestBrokenPayloadsDoNoHarm tries 2,500 broken payloads of each runtime, or 10,000 if HOOKFABRIC_LONG is set. Under the race
// detector, which is ten times slower, it tries 500.
func TestBrokenPayloadsDoNoHarm(t *testing.T) {
	t.Parallel()
	byRuntime, all := recordedInputs(t)
	payloads := 2_500
	switch {
	case raceDetector || testing.Short():
		payloads = 500
	case os.Getenv("HOOKFABRIC_LONG") != "":
		payloads = 10_000
	}
	for i, name := range dialect.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := byRuntime[name]
			if len(own) == 0 {
				t.Fatal("nothing that it sends was recorded")
			}
			r := rand.New(rand.NewPCG(51, uint64(i)))
			d := runtimeOf(t, name)
			moments := d.Moments()
			faulty := 0
			for range payloads {
				in := variants(own[r.IntN(len(own))], moments, r)
				in.Payload = mutated(in.Payload, all[r.IntN(len(all))].Payload, r)
				if withstands(t, name, d, in).Faulty {
					faulty++
				}
			}
			if faulty < payloads/10 || faulty > payloads-payloads/10 {
				t.Errorf("%d of %d payloads cannot be read; the mutations test too little", faulty, payloads)
			}
		})
	}
}

// A payload with endless nesting is unreadable.
func TestABottomlessPayloadDoesNoHarm(t *testing.T) {
	for _, name := range dialect.Names() {
		d := runtimeOf(t, name)
		m, _ := dialect.At(d, schema.PreToolUse)
		payload := `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":` + strings.Repeat(`{"a":`, 100_000)
		if c := withstands(t, name, d, dialect.Input{Moment: m, Payload: []byte(payload)}); !c.Faulty {
			t.Errorf("%s reads it", name)
		}
	}
}

// mutated returns a payload with a few random changes.
func mutated(payload, other []byte, r *rand.Rand) []byte {
	data := append([]byte(nil), payload...)
	for range 1 + r.IntN(4) {
		data = mutate(data, other, r)
	}
	return data
}

func mutate(data, other []byte, r *rand.Rand) []byte {
	if len(data) == 0 {
		return append(data, other...)
	}
	i, j := r.IntN(len(data)), r.IntN(len(other))
	switch r.IntN(9) {
	case 0: // a bit
		data[i] ^= 1 << r.IntN(8)
		return data
	case 1: // truncated
		return data[:i]
	case 2: // a part is repeated
		return fmt.Appendf(nil, "%s%s", data[:i], data[i/2:])
	case 3: // a part is removed
		return append(data[:i:i], data[min(len(data), i+r.IntN(40)):]...)
	case 4: // the second half is another payload's
		return fmt.Appendf(nil, "%s%s", data[:i], other[j:])
	case 5: // another member
		return []byte(strings.Replace(string(data), "{", "{"+junk(r)+`: `+value(r)+`,`, 1+r.IntN(3)))
	case 6: // a value of another kind
		if at := strings.IndexByte(string(data[i:]), ':'); at >= 0 {
			return fmt.Appendf(nil, "%s:%s%s", data[:i+at], value(r), rest(data[i+at:]))
		}
		return data
	case 7: // a member of another name
		return []byte(strings.ReplaceAll(string(data), junk(r), junk(r)))
	}
	return append([]byte("\xef\xbb\xbf "), data...)
}

// rest returns the data after the value at its beginning.
func rest(data []byte) []byte {
	if i := strings.IndexAny(string(data), ",}]"); i >= 0 {
		return data[i:]
	}
	return nil
}

func junk(r *rand.Rand) string {
	names := []string{`"hook_event_name"`, `"tool_name"`, `"tool_input"`, `"toolName"`, `"sessionId"`, `"hookName"`, `"toolArgs"`, `"tool_response"`,
		`"agent_id"`, `"session_id"`, `"prompt"`, `"cwd"`, `"turn_id"`, `"timestamp"`, `"tool_use_id"`, `"token_usage"`, `"conversation_id"`, `"hook_type"`}
	return names[r.IntN(len(names))]
}

func value(r *rand.Rand) string {
	values := []string{`null`, `""`, `"PreToolUse"`, `"PostToolUse"`, `"Stop"`, `"BeforeTool"`, `"preToolUse"`, `0`, `-1e400`, `12345678901234567890`, `true`,
		`[]`, `{}`, `{"command":"ls"}`, `[[[[]]]]`, `"\ud800"`, "\"\xff\"", `"` + strings.Repeat("x", 2_000) + `"`, strings.Repeat("[", 100), `{"a":1,"a":2}`}
	return values[r.IntN(len(values))]
}

// fuzz checks withstands with fuzzed payloads. moment selects the event on the command line.
func fuzz(f *testing.F, runtime string) {
	d := runtimeOf(f, runtime)
	seeds, _ := recordedInputs(f)
	for _, in := range seeds[runtime] {
		f.Add(in.Payload, 0, false)
		f.Add(in.Payload, 1, true)
	}
	moments := append([]dialect.Moment{{}}, d.Moments()...)
	f.Fuzz(func(t *testing.T, payload []byte, moment int, inCopilot bool) {
		in := dialect.Input{Moment: moments[max(0, moment)%len(moments)], Payload: payload}
		if inCopilot {
			in.Env = func(string) string { return "1" }
		}
		withstands(t, runtime, d, in)
	})
}

func FuzzAgy(f *testing.F)      { fuzz(f, "agy") }
func FuzzClaude(f *testing.F)   { fuzz(f, "claude") }
func FuzzCodex(f *testing.F)    { fuzz(f, "codex") }
func FuzzCopilot(f *testing.F)  { fuzz(f, "copilot") }
func FuzzCursor(f *testing.F)   { fuzz(f, "cursor") }
func FuzzGeneric(f *testing.F)  { fuzz(f, "generic") }
func FuzzGemini(f *testing.F)   { fuzz(f, "gemini") }
func FuzzOpenCode(f *testing.F) { fuzz(f, "opencode") }
func FuzzQwen(f *testing.F)     { fuzz(f, "qwen") }

// There is a fuzz target for each runtime.
func TestEveryRuntimeIsFuzzed(t *testing.T) {
	source, err := os.ReadFile("broken_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range dialect.Names() {
		if !strings.Contains(string(source), fmt.Sprintf("fuzz(f, %q)", name)) {
			t.Errorf("no fuzz target of %s; add one to broken_test.go", name)
		}
	}
}
