package bench

import (
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

func TestTheMessagesOfAQueryAreCounted(t *testing.T) {
	rows, _ := queries()
	for name, c := range map[string]struct {
		row  string
		sent int
		want bool
	}{
		"the expected messages are fine":                 {"", 0, true},
		"one for a hook whose when is false is too many": {"a hook on each event whose when is false, tools at once", 1, false},
		"one is missing of a hook on a worker":           {"a hook on each event of a remote pool, tools in sequence", roles.QueryEvents - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			counted := map[string]int{
				"a hook on each event of a remote pool, tools in sequence": roles.QueryEvents,
				"a hook on each event of a remote pool, tools at once":     roles.QueryEvents,
			}
			if c.row != "" {
				counted[c.row] = c.sent
			}
			var r Report
			r.judgeMessages(rows, counted)
			if r.OK() != c.want || len(r.Tables[0].Rows) != len(rows) || r.Checks[0].Seen != int64(len(rows)) {
				t.Errorf("ok is %v: %+v", r.OK(), r.Checks)
			}
		})
	}
}

// TestTheConfigurationIsAsTheRowsSay counts the hooks of the configuration.
func TestTheConfigurationIsAsTheRowsSay(t *testing.T) {
	doc, err := hooksyaml.Read("hooks.yaml", []byte(queryHooks()), hooksyaml.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := 3 * len(queryEvents()); len(doc.Config.Hooks) != want {
		t.Errorf("%d hooks instead of %d", len(doc.Config.Hooks), want)
	}
}
