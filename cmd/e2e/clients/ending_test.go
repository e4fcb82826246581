package clients_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
)

// Each client ends a turn, also without a limit of its own.
func TestATurnEndsAlthoughAHookAlwaysRetries(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		script := h.write("hooks/more.sh", "#!/bin/sh\ncat >/dev/null\n"+`echo '{"decision":"retry","reason":"once more, please"}'`+"\n")
		h.install(byItself(), startFabric(t, `hooks:
  BeforeFinalResponse:
    - {type: command, handler: `+script+`}
`))
		p := h.play(model.Turn{Text: "that is all"})
		p.mustSee(1, "once more, please")
		if n := len(p.requests); n < 3 || n > 10 {
			t.Errorf("the model was asked %d times", n)
		}
	}, "claude", "codex", "gemini", "copilot", "qwen")
}

// TestNoTurnEndsWithSomethingUnread holds that what waits for an agent that calls
// no tool reaches its model before the turn ends, once.
func TestNoTurnEndsWithSomethingUnread(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		f := startFabric(t, "hooks: {}\n")
		f.inject(t, byItself(), "the tide is rising")
		h.install(byItself(), f)
		p := h.play(model.Turn{Text: "that is all"}, model.Turn{Text: "then to the boats"})
		p.mustSee(1, "the tide is rising")
		if n := len(p.requests); n < 2 || n > 4 {
			t.Errorf("the model was asked %d times", n)
		}
	}, "claude", "codex", "gemini", "copilot", "qwen")
}

// TestAnItemAtTheLimitWaits holds that at the end of a turn that was put off as
// often as the client, or the shim, lets anybody, nothing is taken along any more:
// of what came at each end all is read, and the last is there for the next turn.
func TestAnItemAtTheLimitWaits(t *testing.T) {
	eachClient(t, func(t *testing.T, h *home) {
		at := filepath.Join(h.dir, "fabric")
		script := h.write("hooks/more.sh", "#!/bin/sh\ncat >/dev/null\n"+
			`n=$(($(cat '`+at+`.n' 2>/dev/null || echo 0) + 1)); echo $n >'`+at+`.n'`+"\n"+
			`'`+program("broker")+`' inject --nats "$(cat '`+at+`.url')" --agent `+agent+` "note $n;" >&2 && echo '{}'`+"\n")
		f := startFabric(t, `hooks:
  BeforeFinalResponse:
    - {type: command, handler: `+script+`}
`)
		h.write("fabric.url", f.url) // the hook is asked only after that
		h.install(byItself(), f)
		p := h.play(model.Turn{Text: "that is all"})
		count, err := os.ReadFile(at + ".n")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(count)))
		if err != nil || n < 6 || n > 12 {
			t.Fatalf("the turn has %q ends: %v", count, err)
		}
		seen := ""
		for _, r := range p.requests {
			seen += r.Texts()
		}
		for i := 1; i <= n; i++ {
			if got := strings.Contains(seen, fmt.Sprintf("note %d;", i)); got != (i < n) {
				t.Errorf("of %d notes, the model sees number %d: %t", n, i, got)
			}
		}
		out, err := run(t.Context(), f.dir, []string{"HOME=" + f.dir}, program("broker"), "pending", "--nats", f.url, "--agent", agent)
		if err != nil || !strings.Contains(out, "\n1 waits: human 1\n") {
			t.Errorf("not the last note alone waits: %v\n%s", err, out)
		}
	}, "claude", "codex", "gemini", "copilot", "qwen")
}
