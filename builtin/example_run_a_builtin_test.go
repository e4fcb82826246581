package builtin_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I try a built-in hook in a test?
func Example_howDoIRunABuiltin() {
	load := builtin.Catalog(slog.Default())["path_permission"]
	hook, err := load(schema.Hook{
		Name: "paths", Event: schema.PreToolUse, Type: schema.Builtin, Handler: "path_permission",
		Options: map[string]any{"allow": []any{"/repo"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/repo/a.go", "/etc/passwd"} {
		input := jsontext.Value(fmt.Sprintf(`{"file_path":%q,"content":""}`, path))
		r, err := hook.Handle(context.Background(), &schema.Event{
			HookType: schema.PreToolUse, Runtime: "claude", ToolName: "Write", ToolInput: input, Cwd: "/repo",
		})
		fmt.Printf("%s: %q %v\n", path, r.Decision, err)
	}
	// Output:
	// /repo/a.go: "" <nil>
	// /etc/passwd: "deny" <nil>
}
