package workers_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// How do I test a hook without NATS?
func Example_howDoITestAHookWithoutNATS() {
	noForce := workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
		if strings.Contains(string(e.ToolInput), "--force") {
			return schema.Denied("do not force"), nil
		}
		return schema.Result{}, nil // no opinion
	})

	// A hook is a function of an event, so a test is a table of events.
	for _, command := range []string{"git push", "git push --force"} {
		input := jsontext.Value(fmt.Sprintf(`{"command":%q}`, command))
		r, err := noForce.Handle(context.Background(), &schema.Event{HookType: schema.PreToolUse, ToolName: "Bash", ToolInput: input})
		fmt.Printf("%s: %q %v\n", command, r.Decision, err)
	}
	// Output:
	// git push: "" <nil>
	// git push --force: "deny" <nil>
}
