package sdktest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/agent/sdktest"
	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/cmd/e2e/clients/released"
)

// TestTheClaudeAgentSDKObeys runs the released SDK. A model makes four shell calls at once, and
// its next request must show that the SDK obeyed the answers of the hooks.
func TestTheClaudeAgentSDKObeys(t *testing.T) {
	t.Parallel()
	node, _, _ := nodeThere(t)
	dir := sdkThere(t)
	home := t.TempDir()
	var calls []model.Call
	for _, name := range []string{"denied", "rewrite", "told", "unjudged"} {
		calls = append(calls, model.Call{Tool: "Bash", Input: map[string]string{"command": "touch " + name, "description": "as told"}})
	}
	m := model.Start(model.Turn{Calls: calls})
	defer m.Close()
	daemon := sdktest.NewDaemon(t)
	daemon.Answers(answerSDK)
	out := sdktest.Script{Dir: typescriptDir, Daemon: daemon, Argv: []string{node, filepath.Join("testdata", "sdk.mjs")},
		Env: []string{"SDK=" + dir, "MODEL=" + m.URL, "HOME=" + home, "HOOKFABRIC_TEST_SHIM=crash"}}.Run(t)
	for name, want := range map[string]bool{"denied": false, "rewrite": false, "rewritten": true, "told": true, "unjudged": false} {
		if _, err := os.Stat(filepath.Join(home, name)); (err == nil) != want {
			t.Errorf("'touch %s' ran: %v, want %v", name, err == nil, want)
		}
	}
	before, _ := m.At(0)
	after, ok := m.At(1)
	for _, text := range []string{"not while the tide is rising", "by the side door", "the tide is rising now", "no broker judged this call"} {
		if !ok || !strings.Contains(after.Texts(), text) || strings.Contains(before.Texts(), text) {
			t.Errorf("the model does not see %q in the second request", text)
		}
	}
	if !strings.Contains(out, "hooks of the agent's own: 4") {
		t.Error("the agent's own hook did not see the four calls")
	}
	if t.Failed() {
		t.Logf("output of the agent:\n%s\nrequests to the daemon:\n%s", out, daemon.Got())
	}
}

// sdkThere returns the folder of the fetched SDK.
func sdkThere(t *testing.T) string {
	t.Helper()
	sdk := released.AgentSDK()
	if _, err := sdk.Command(); err != nil {
		t.Skip("SKIPPED: the Claude Agent SDK is not tested: ", err)
	}
	dir, err := sdk.Dir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTheTypesAreThoseOfTheSDK checks that the types of the hooks match those of the SDK.
func TestTheTypesAreThoseOfTheSDK(t *testing.T) {
	tsc := tscThere(t)
	dir, sdk := typed(t, tsc), filepath.Join(sdkThere(t), "node_modules", "@anthropic-ai", "claude-agent-sdk")
	source := strings.ReplaceAll(string(read(t, "testdata/sdk_types.ts")), "@anthropic-ai/claude-agent-sdk", filepath.ToSlash(filepath.Join(sdk, "sdk.js")))
	if err := os.WriteFile(filepath.Join(dir, "sdk_types.ts"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := compiled(t, tsc, dir, "--noEmit", "sdk_types.ts"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	wrong := strings.Replace(source, "claudeHooks({", "claudeHooks({ existing: 1,", 1)
	if err := os.WriteFile(filepath.Join(dir, "sdk_types.ts"), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := compiled(t, tsc, dir, "--noEmit", "sdk_types.ts"); err == nil {
		t.Errorf("tsc accepts a wrong type: %s", out)
	}
}

// answerSDK answers each of the calls in the place of a daemon.
func answerSDK(w http.ResponseWriter, r *http.Request, body []byte) {
	pre := strings.Contains(r.URL.Path, "/PreToolUse")
	before, of := `{"hookSpecificOutput":{"hookEventName":"PreToolUse",%s}}`, func(name string) bool { return strings.Contains(string(body), "touch "+name) }
	switch {
	case pre && of("denied"):
		fmt.Fprintf(w, before, `"permissionDecision":"deny","permissionDecisionReason":"not while the tide is rising"`)
	case pre && of("rewrite"):
		fmt.Fprintf(w, before, `"permissionDecision":"allow","updatedInput":{"command":"touch rewritten; echo by the side door"}`)
	case !pre && of("told") && strings.Contains(r.URL.Path, "/PostToolUse"):
		fmt.Fprint(w, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"the tide is rising now"}}`)
	case pre && of("unjudged"):
		http.Error(w, "the daemon is broken", http.StatusInternalServerError)
	default:
		fmt.Fprint(w, `{}`)
	}
}
