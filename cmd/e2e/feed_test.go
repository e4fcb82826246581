package e2e_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

const denyEdits = `presets: []
hooks:
  PreToolUse:
    - {name: no-edits, matcher: Edit, type: builtin, handler: deny, options: {reason: edits are denied}}
    - {name: fine, matcher: "Bash", type: builtin, handler: allow}
`

// told runs a command of the broker to its end, and returns its output.
func told(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := exec.LookPath("broker")
	if err != nil {
		t.Fatal(err)
	}
	var out, say strings.Builder
	c := exec.CommandContext(t.Context(), path, args...)
	c.Env, c.Stdout, c.Stderr = cleaned(c.Environ()), &out, &say
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), say.String(), c.ProcessState.ExitCode()
}

// asks asks n times, and returns the ids of the events.
func asks(t *testing.T, c *client.Client, n int, tool string) (ids []string) {
	t.Helper()
	for range n {
		v, err := ask(t.Context(), c, tool)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, v.EventID)
	}
	return ids
}

// recorded are the events in what `feed --json` printed, in its order.
func recorded(t *testing.T, stdout string) (ids []string) {
	t.Helper()
	for line := range strings.Lines(stdout) {
		var rec schema.Record
		if err := schema.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		ids = append(ids, rec.EventID)
	}
	return ids
}

// What was decided is there after a stop, each verdict once, and can be picked.
func TestTheFeedPrintsVerdicts(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	b := startBroker(t, "--config", write(t, dir, "hooks.yaml", denyEdits), "--data", data)
	c := dial(t, b.url)
	want := slices.Concat(asks(t, c, 40, "Bash"), asks(t, c, 2, "Edit"), asks(t, c, 20, "Bash"))
	b.must(t, syscall.SIGTERM) // at once: nothing that was decided is lost
	if code, err := b.wait(); err != nil || code != 0 {
		t.Fatalf("%d, %v", code, err)
	}
	b = startBroker(t, "--data", data)
	stdout, stderr, code := told(t, "feed", "--json", "--nats", b.url)
	got := recorded(t, stdout)
	// A call is answered first, so that of two that follow each other at once the later
	// one may be written down before the other.
	if code != 0 || stderr != "" || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("%d: %d records of %d; it said %q", code, len(got), len(want), stderr)
	}
	stdout, _, _ = told(t, "feed", "--nats", b.url, "--decision", "deny", "--agent", "test*", "--tool", "Edit", "--hook", "no-*", "--event", "PreToolUse", "--limit", "1")
	line := `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z deny     PreToolUse tester       Edit   \S+ "edits are denied" no-edits:deny\n$`
	if !regexp.MustCompile(line).MatchString(stdout) {
		t.Errorf("it printed %q", stdout)
	}
	for _, none := range [][]string{{"--agent", "unknown"}, {"--decision", "ask"}, {"--hook", "other"}, {"--until", "30m"}, {"--event", "QueryEnd"}} {
		if stdout, _, code := told(t, append([]string{"feed", "--nats", b.url}, none...)...); stdout != "" || code != 0 {
			t.Errorf("%q: %d, %q", none, code, stdout)
		}
	}
	if stdout, _, _ := told(t, "feed", "--json", "--nats", b.url, "--limit", "21"); !slices.Equal(recorded(t, stdout), got[41:]) {
		t.Error("the last 21 are others")
	}
}

// A client that follows gets each verdict once, although the broker restarts.
func TestTheFeedGoesOnWhenItsBrokerIsBack(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	b := startBroker(t, "--config", write(t, dir, "hooks.yaml", denyEdits), "--data", data)
	c := dial(t, b.url)
	want := asks(t, c, 5, "Bash")
	feed := start(t, "broker", "feed", "--follow", "--json", "--nats", b.url)
	feed.mustSay(t, 0, want[4])
	for range 2 {
		more := asks(t, c, 5, "Edit")
		want = append(want, more...)
		for _, id := range more {
			feed.mustSay(t, 0, id)
		}
		b.must(t, syscall.SIGKILL)
		if _, err := b.wait(); err != nil {
			t.Fatal(err)
		}
		b = startBroker(t, "--data", data, "--listen", strings.TrimPrefix(b.url, "nats://"))
	}
	last := asks(t, c, 1, "Bash")
	want = append(want, last...)
	feed.mustSay(t, 0, last[0])
	feed.must(t, syscall.SIGINT)
	if code, err := feed.wait(); err != nil || code != 0 {
		t.Errorf("it ended with %d, %v", code, err)
	}
	said := feed.said.String()
	for _, id := range want {
		if n := strings.Count(said, id); n != 1 {
			t.Errorf("%s was told %d times", id, n)
		}
	}
}

func TestWithoutARecordTheFeedShowsNewVerdicts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := startBroker(t, "--config", write(t, dir, "hooks.yaml", denyEdits), "--record", "off")
	c := dial(t, b.url)
	asks(t, c, 1, "Edit")
	if stdout, stderr, code := told(t, "feed", "--nats", b.url); code != 1 || stdout != "" || !strings.Contains(stderr, "this fabric has no record of verdicts: its brokers run with --record off") {
		t.Errorf("%d, %q, %q", code, stdout, stderr)
	}
	feed := start(t, "broker", "feed", "--follow", "--decision", "deny", "--nats", b.url)
	feed.mustSay(t, 0, "this fabric has no record of verdicts")
	if err := eventually("the feed shows a deny", func() bool {
		asks(t, c, 1, "Edit") // until it listens
		return strings.Contains(feed.said.String(), "no-edits:deny")
	}); err != nil {
		t.Error(err)
	}
}

func TestAFeedThatCouldShowNothingIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--decision maybe", `--decision is "maybe"; use one of allow, `},
		{"--event Lunch", `--event: unknown event "Lunch"`},
		{"--since yesterday", `"yesterday" is neither an age`},
		{"--limit -1", "--limit is -1"},
		{"--follow --until 1h", "remove one of them"},
		{"--agent [", "the pattern of the agent"},
		{"all", `unknown argument "all"`},
	} {
		if _, stderr, code := told(t, append([]string{"feed"}, strings.Fields(c.args)...)...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, %q", c.args, code, stderr)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--record some", `--record is "some"; use facts, content or off`},
		{"--record-age 1s", "--record-age is 1s; use at least 1m0s"},
		{"--record-bytes 1KiB", "--record-bytes is 1024; use at least 1MiB"},
		{"--record-redact a..b", `the rule "a..b" has an empty part`},
	} {
		if _, stderr, code := told(t, append([]string{"serve"}, strings.Fields(c.args)...)...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, %q", c.args, code, stderr)
		}
	}
}

// A secret that was typed is nowhere in the files of a broker that keeps the content.
func TestSecretsAreInNoFileOfTheRecord(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	b := startBroker(t, "--config", write(t, dir, "hooks.yaml", denyEdits), "--data", data, "--record", "content", "--record-redact", "tool_input.env.*,**.hidden")
	c := dial(t, b.url)
	for _, input := range []string{
		`{"command":"deploy --token first-secret-word","marker":"kept-1"}`,
		`{"env":{"X":"second-secret-word"},"command":"echo second-secret-word","marker":"kept-2"}`,
		`{"list":[{"hidden":["third-secret-word"]}],"marker":"kept-3"}`,
	} {
		if _, err := c.Ask(t.Context(), &schema.Event{HookType: schema.PreToolUse, AgentID: "tester", ToolName: "Edit", ToolInput: []byte(input)}); err != nil {
			t.Fatal(err)
		}
	}
	stdout := ""
	if err := eventually("all is written", func() bool {
		stdout, _, _ = told(t, "feed", "--json", "--nats", b.url)
		return strings.Count(stdout, "\n") == 3
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if !strings.Contains(stdout, fmt.Sprint("kept-", i+1)) {
			t.Errorf("what is no secret is not there:\n%s", stdout)
		}
	}
	if strings.Contains(stdout, "secret-word") {
		t.Errorf("a secret is there:\n%s", stdout)
	}
}
