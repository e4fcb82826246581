package roles

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

func TestSamplesAreOfOneSize(t *testing.T) {
	seen := map[string]bool{}
	for _, tool := range []string{"", "none", "a-rather-long-tool-name"} {
		s, err := newSample(tool)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			e, err := s.event()
			if err != nil {
				t.Fatal(err)
			}
			body, err := schema.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(body) - EventSize; n < -7 || n > 7 {
				t.Errorf("an event of the tool %q takes %d bytes", tool, len(body))
			}
			if e.ToolName != tool || seen[e.EventID] {
				t.Errorf("the event %s of %q comes twice or has the wrong tool", e.EventID, tool)
			}
			seen[e.EventID] = true
		}
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*schema.Verdict)
		want  string
	}{
		"an allow of all hooks is right": {func(*schema.Verdict) {}, ""},
		"a deny is wrong":                {func(v *schema.Verdict) { v.Decision = schema.Deny }, `the verdict is "deny"`},
		"no opinion is wrong":            {func(v *schema.Verdict) { v.Decision = schema.Continue }, `"continue" where "allow" was due`},
		"a hook too few is wrong":        {func(v *schema.Verdict) { v.ExecutedHooks = v.ExecutedHooks[1:] }, "2 hooks were asked where 3 match"},
		"a hook that failed is wrong":    {func(v *schema.Verdict) { v.ExecutedHooks[1].Outcome = schema.Lost }, `came to "lost"`},
		"a hook error is wrong":          {func(v *schema.Verdict) { v.HookErrors = []string{"oops"} }, "oops"},
	} {
		t.Run(name, func(t *testing.T) {
			v := folded("w", allowed(3))
			c.spoil(v)
			err := check(v, 3)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
		})
	}
	if err := check(folded("w", nil), 0); err != nil {
		t.Errorf("no opinion of no hooks: %v", err)
	}
}

// up starts a role in this process.
func up[C any](t *testing.T, start func(context.Context, C) (*proc.Role, error), config C) *proc.Role {
	t.Helper()
	r, err := start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.Close == nil {
			return
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func natsServer(t *testing.T) string {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server takes no connections")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s.ClientURL()
}

// request sends a request to a requester, as its parent would.
func request(t *testing.T, r *proc.Role, target Target, callers int) (load.Figures, error) {
	t.Helper()
	line, err := schema.Marshal(Request{Target: target, Window: load.Window{Callers: callers, Long: schema.Duration(20 * time.Millisecond)}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Do(t.Context(), line)
	f, _ := v.(load.Figures)
	return f, err
}

func TestEveryWayWithoutAFabric(t *testing.T) {
	at := Places{NATS: natsServer(t)}
	up(t, startRawResponder, Address{URL: at.NATS})
	at.Webhook = up(t, startWebhook, struct{}{}).Facts.(Address).URL
	at.Inside = up(t, startInside, struct{}{}).Facts.(Address).URL
	up(t, startRawResponder, Address{URL: at.Inside})
	two := up(t, startStageTwo, struct{}{}).Facts.(Address)
	at.Stages = up(t, startStageOne, two).Facts.(Address).URL
	r := up(t, startRequester, at)
	for _, target := range []Target{
		{Way: Raw, Hooks: 1},
		{Way: InsideServer, Hooks: 1}, {Way: Relayed, Hooks: 1},
		{Way: Hook, Hooks: 1}, {Way: Hook, Hooks: 8},
		{Way: TwoStages, Hooks: 3},
		{Way: Command},
	} {
		for _, callers := range []int{0, 1, 16} {
			f, err := request(t, r, target, callers)
			if err != nil || callers > 0 && (f.Calls == 0 || f.P50 == 0) {
				t.Errorf("%+v with %d callers: %+v, %v", target, callers, f, err)
			}
		}
	}
}

func TestAWrongAnswerFailsTheMeasurement(t *testing.T) {
	denies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"decision":"deny","reason":"no"}`))
	}))
	defer denies.Close()
	r := up(t, startRequester, Places{Webhook: denies.URL})
	_, err := request(t, r, Target{Way: Hook, Hooks: 1}, 4)
	if err == nil || !strings.Contains(err.Error(), `the verdict is "deny"`) {
		t.Errorf("the error is %v", err)
	}
	if _, err := request(t, r, Target{Way: Raw, Hooks: 1}, 1); err == nil || !strings.Contains(err.Error(), "has no target") {
		t.Errorf("a way without a place gave %v", err)
	}
}

func TestItemsOfAVerdictAreCounted(t *testing.T) {
	v := &schema.Verdict{Injections: []schema.Injection{{Sequence: 3}, {Sequences: []uint64{4, 5, 6}}, {}}}
	if n := delivered(v); n != 4 {
		t.Errorf("%d items", n)
	}
}
