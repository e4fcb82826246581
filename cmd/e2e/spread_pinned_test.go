package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestACallKeepsItsVersion holds a call in its first hook until the nodes have dropped the version
// that it began with, because many newer ones became active. Its other hooks still run.
func TestACallKeepsItsVersion(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 2)
	let := filepath.Join(s.dir, "let-go")
	text := fmt.Sprintf(`presets: []
hooks:
  PreToolUse:
    - {name: first, type: builtin, handler: hold, pool: crew, timeout: 10, options: {until: %q}}
    - {name: between, type: builtin, handler: allow}
    - {name: last, type: builtin, handler: refuse, pool: crew, timeout: 10, fail_closed: true}
`, let)
	held := answerOf(t, s.operate(t, 0, "apply", s.file(t, "hold.yaml", text), "--json")).Version
	verdict := make(chan called, 1)
	asking := dial(t, s.url)
	go func() {
		v, err := ask(t.Context(), asking, "Tool")
		verdict <- called{verdict: v, err: err}
	}()
	if err := eventually("the call is under way", func() bool {
		st, err := status(s.nc)
		return err == nil && inFlight(&st) > 0
	}); err != nil {
		t.Fatal(err)
	}
	for n := 2; n <= 6; n++ {
		s.apply(t, n)
	}
	s.file(t, filepath.Base(let), "")
	c := <-verdict
	want := sight{held, "deny", `refused by the hook "last"`, "first:ok between:ok last:ok"}
	if c.err != nil || sightOf(c.verdict) != want {
		t.Errorf("the call got %+v, %v\nwant %+v", c.verdict, c.err, want)
	}
}

// inFlight is how many batches the workers of the crew have in hand.
func inFlight(st *schema.FabricStatus) (n int) {
	for _, p := range st.Pools {
		for _, w := range p.Workers {
			if p.Pool == "crew" {
				n += w.InFlight
			}
		}
	}
	return n
}
