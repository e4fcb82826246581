package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// countingHook says what it saw of a conversation, at the end of a turn.
const countingHook = `
def count(event):
    history = event.to_dict()["history"]
    return {"reason": "%d messages of %d" % (len(history), sum(len(m["content"]) for m in history)), "decision": "retry"}
`

// A historian is a fabric of processes, a hook of which needs the conversation.
type historian struct {
	t          *testing.T
	broker     *brokerProcess
	dir, state string
	env        []string
}

func newHistorian(t *testing.T) *historian {
	h := &historian{t: t, dir: t.TempDir()}
	h.state = filepath.Join(h.dir, "state")
	write(t, h.dir, "talks.py", countingHook)
	config := write(t, h.dir, "hooks.yaml", `hooks:
  BeforeFinalResponse:
    - {type: python, handler: talks.count, pool: crew, needs: [history], fail_closed: true, timeout: 20}
`)
	h.broker = startBroker(t, "--config", config, "--data", filepath.Join(h.dir, "data"))
	h.env = []string{"HOOKFABRIC_NATS=" + h.broker.url, "HOOKFABRIC_STATE=" + h.state, "HOOKFABRIC_SOCKET=" + filepath.Join(h.dir, "d", "s"), "HOOKFABRIC_HTTP=127.0.0.1:0"}
	startWith(t, h.env, "agentshim", "serve")
	if err := eventually("the daemon says where it is", func() bool {
		_, err := os.Stat(filepath.Join(h.state, "daemon.json"))
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
	return h
}

// worker starts a worker that never saw any part of a conversation.
func (h *historian) worker(name string) *process {
	h.t.Helper()
	p := start(h.t, "hookworker", "--nats", h.broker.url, "--name", name, "--pool", "crew", "--hooks", h.dir, "--http", "")
	awaitWorkers(h.t, connect(h.t, h.broker.url), name)
	return p
}

// killed ends the broker by force and starts it again on its data and address.
func (h *historian) killed() {
	h.t.Helper()
	h.broker.must(h.t, syscall.SIGKILL)
	if _, err := h.broker.wait(); err != nil {
		h.t.Fatal(err)
	}
	h.broker = startBroker(h.t, "--data", filepath.Join(h.dir, "data"), "--listen", strings.TrimPrefix(h.broker.url, "nats://"))
}

// asks has the daemon asked about the end of a turn, with the whole conversation.
func (h *historian) asks(all []schema.Message) {
	h.t.Helper()
	var card struct {
		URL string `json:"url"`
	}
	data, err := os.ReadFile(filepath.Join(h.state, "daemon.json"))
	if err == nil {
		err = schema.Unmarshal(data, &card)
	}
	token, tokenErr := os.ReadFile(filepath.Join(h.state, "daemon.token"))
	if err != nil || tokenErr != nil {
		h.t.Fatal(err, tokenErr)
	}
	size := 0
	for _, m := range all {
		size += len(m.Content)
	}
	body, err := schema.Marshal(map[string]any{"agent_id": "a", "message": "done", "history": all})
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, strings.TrimSuffix(card.URL, "/")+"/v1/events/BeforeFinalResponse", strings.NewReader(string(body)))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	var v schema.Verdict
	if err := schema.Unmarshal(got, &v); err != nil || v.Decision != schema.Retry || v.Reason != fmt.Sprintf("%d messages of %d", len(all), size) {
		h.t.Fatalf("of %d messages of %d: %v, %.2000s", len(all), size, err, got)
	}
}

// stored counts the parts that came to this broker.
func (h *historian) stored() (n int) {
	h.t.Helper()
	_, metrics, err := fetch(h.broker.http + "/metrics")
	if err != nil {
		h.t.Fatal(err)
	}
	const series = "\nhookfabric_history_parts_total{outcome=\"stored\"} "
	_, value, _ := strings.Cut(metrics, series)
	if _, err := fmt.Sscan(value, &n); err != nil {
		h.t.Fatalf("the metrics have no line that begins with %q: %v", series, err)
	}
	return n
}

// spoken is a conversation, none of whose parts is another's.
func spoken(messages int) (all []schema.Message) {
	for i := range messages {
		all = append(all, schema.Message{Role: schema.RoleUser, Content: strings.Repeat(fmt.Sprintf("%d and so on, ", i), 400)})
	}
	return all
}

// TestAConversationOutlivesItsProcesses kills the broker that stored a conversation
// and the worker that put it together: what the agent's side has stored before is
// neither lost nor stored again.
func TestAConversationOutlivesItsProcesses(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3: conversations for hooks in it stay untried among processes")
	}
	h := newHistorian(t)
	first := h.worker("w0")
	h.asks(spoken(60))
	before := h.stored()
	h.killed()
	first.kill()
	h.worker("w1")
	h.asks(spoken(60))
	if n := h.stored(); before < 2 || n != 0 {
		t.Errorf("%d parts were stored before the broker died, and %d after that", before, n)
	}
	h.asks(spoken(90))
}
