package app_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

func TestStatusListsWhatShadowHooksWouldHaveChanged(t *testing.T) {
	got := statusOf(t, []schema.ShadowStatus{
		{Hook: "no-downloads", Counts: []schema.ShadowCount{
			{Decided: schema.Continue, Would: schema.Continue, Count: 1200},
			{Decided: schema.Continue, Would: schema.Deny, Count: 31, Last: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182", Reason: "use the mirror\nplease"},
			{Decided: schema.Allow, Would: schema.Ask, Count: 2, Last: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607183"},
			{Decided: schema.Deny, Would: schema.Deny, Count: 1},
		}},
		{Hook: "quiet"},
	}, "--shadow")
	want := `
HOOK               CALLS  SAME  DIFFERENT  LAST EVENT                            REASON
no-downloads       1234   1201  33
  continue → deny               31         0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182  "use the mirror\nplease"
  allow → ask                   2          0199f3c1-6d1f-7e8a-9b2c-3d4e5f607183
quiet              0      0     0
`
	if d := cmp.Diff(strings.TrimPrefix(want, "\n"), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStatusReportsThatThereAreNoShadowHooks(t *testing.T) {
	if got := statusOf(t, nil, "--shadow"); got != "no hook has mode: shadow\n" {
		t.Errorf("%q", got)
	}
}

func TestShadowHooksAsJSON(t *testing.T) {
	got := statusOf(t, []schema.ShadowStatus{{Hook: "x", Counts: []schema.ShadowCount{{Decided: schema.Deny, Would: schema.Deny, Count: 3}}}}, "--shadow", "--json")
	if !strings.Contains(got, `"shadow":[{"hook":"x","counts":[{"decided":"deny","would":"deny","count":3}]}]`) {
		t.Errorf("%s", got)
	}
}

// statusOf returns the output of `broker status` with these flags, for a fabric with these shadow
// hooks.
func statusOf(t *testing.T, shadow []schema.ShadowStatus, flags ...string) string {
	t.Helper()
	server := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	nc := bustest.Connect(t, server, "fake broker")
	_, err := nc.Subscribe("hook.v1.ctl.status._", func(m *nats.Msg) {
		var req schema.StatusRequest
		st := schema.FabricStatus{Fabric: "f"}
		if err := schema.Unmarshal(m.Data, &req); err == nil && req.Shadow {
			st.Shadow = shadow
		}
		data, err := schema.Marshal(st)
		if err == nil {
			err = m.Respond(data)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := append([]string{"status", "--nats", server.ClientURL()}, flags...)
	if code := app.Main(ctx, args, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("%d: %s", code, &stderr)
	}
	return stdout.String()
}
