// Package sdktest tests the clients in other languages: bus/agent/python and bus/agent/typescript.
//
// It has a fake daemon and a fake shim. Both choose the answer by the name of the tool, so that a script can
// get every answer.
//
// hookfabric.py folds the answers of in-process hooks in the same way as bus/dispatch folds those of remote
// hooks. The tests feed the same outcomes to both. Change both together.
//
// The folder python/obelix stands in for Obelix, for agents that were written for it. If Obelix itself is
// installed, Python imports that instead. Only programs with this folder on their path find the stand-in;
// processes that run hooks do not.
package sdktest

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// shimVar is the variable that makes a test process act as a shim; its value is the
// behaviour.
const shimVar = "HOOKFABRIC_TEST_SHIM"

// A Daemon answers as `agentshim serve` does.
type Daemon struct {
	// State is the folder with the daemon's address. The file asked-id has the id of the
	// last event.
	State string

	mu     sync.Mutex // guards got
	got    []string   // the requests, one per line
	answer Answer
}

// An Answer answers a request for which a [Daemon] has no answer.
type Answer func(w http.ResponseWriter, r *http.Request, body []byte)

// Answers sets the answer for all other requests.
func (d *Daemon) Answers(a Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = a
}

// NewDaemon starts a daemon that ends with the test.
func NewDaemon(t *testing.T) *Daemon {
	t.Helper()
	d := &Daemon{State: t.TempDir()}
	server := httptest.NewServer(d)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	d.write(t, "daemon.token", "secret-of-the-test\n")
	d.write(t, "daemon.json", fmt.Sprintf(`{"url":%q,"token_file":"daemon.token"}`, server.URL))
	return d
}

func (d *Daemon) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.State, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Got returns the requests so far, one per line.
func (d *Daemon) Got() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.got, "\n")
}

// asked has the common members of all payloads.
type asked struct {
	Tool     string `json:"tool_name"`
	OpenCode string `json:"tool"`
	Prompt   string `json:"prompt"`
}

// ServeHTTP answers one request.
func (d *Daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.got = append(d.got, r.Method+" "+r.URL.String()+" "+string(body))
	answer := d.answer
	d.mu.Unlock()
	var a asked
	_ = schema.Unmarshal(body, &a)
	_ = os.WriteFile(filepath.Join(d.State, "asked-id"), []byte(r.Header.Get("Hook-Id")), 0o600)
	switch tool := a.Tool + a.OpenCode + a.Prompt; {
	case r.Header.Get("Authorization") != "Bearer secret-of-the-test":
		http.Error(w, "the token is wrong", http.StatusUnauthorized)
	case tool == "broken":
		http.Error(w, "the daemon is broken", http.StatusInternalServerError)
	case tool == "junk":
		fmt.Fprint(w, `{"decision":"allow"`)
	case tool == "list":
		fmt.Fprint(w, `[]`)
	case tool == "hang":
		<-r.Context().Done()
	case tool == "drip":
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, `{"decision":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case tool == "quiet":
		w.WriteHeader(http.StatusNoContent)
	case strings.HasPrefix(tool, "{"):
		fmt.Fprint(w, tool) // the tool's name is the answer
	case answer != nil:
		answer(w, r, body)
	default:
		fmt.Fprintf(w, `{"by":"daemon","decision":"continue","path":%q}`, r.URL.String())
	}
}

// Main is the body of TestMain. It runs the tests, or acts as the shim if a test started the
// program as one.
func Main(m *testing.M) int {
	switch how := os.Getenv(shimVar); how {
	case "":
		return m.Run()
	case "deny":
		fmt.Fprintln(os.Stderr, "refused by the last known policy")
		return 2
	case "crash":
		fmt.Fprintln(os.Stderr, "the shim is broken")
		return 1
	case "opencode":
		fmt.Fprintf(os.Stdout, `{"decision":"deny","reason":%q}`, strings.Join(os.Args[1:], " "))
		return 0
	case "junk":
		fmt.Fprintln(os.Stdout, `{"decision":`)
		return 0
	case "hang": // with a child that keeps its output open
		if os.Getenv("SDKTEST_CHILD") == "" {
			child := exec.Command(os.Args[0])
			child.Env, child.Stdout = append(os.Environ(), "SDKTEST_CHILD=1"), os.Stdout
			if err := child.Start(); err != nil {
				return 1
			}
			_ = os.WriteFile(filepath.Join(os.Getenv("HOOKFABRIC_TEST_DIR"), "hanging"), fmt.Appendf(nil, "%d", child.Process.Pid), 0o600)
		}
		select {}
	default:
		payload, _ := io.ReadAll(os.Stdin)
		answer := struct {
			By       string   `json:"by"`
			Decision string   `json:"decision"`
			Args     []string `json:"args"`
			Payload  string   `json:"payload"`
			Environ  []string `json:"environ"`
		}{"shim", "continue", os.Args[1:], string(payload), os.Environ()}
		data, err := schema.Marshal(answer)
		if err != nil {
			return 1
		}
		fmt.Fprintln(os.Stdout, string(data))
		return 0
	}
}

// A Script is a script in another language that asks the daemon and the shim.
type Script struct {
	// Argv is the command; Dir is its folder, empty: the folder of the test.
	Argv []string
	Dir  string
	// Daemon is the daemon to ask; nil: no daemon.
	Daemon *Daemon
	// Env lists further environment variables.
	Env []string
}

// Run runs the script and returns its output. The script must succeed quickly, and its child
// processes must end.
func (s Script) Run(t *testing.T) string {
	t.Helper()
	readAll(t, cmp.Or(s.Dir, "."))
	dir := t.TempDir()
	state := dir
	if s.Daemon != nil {
		state = s.Daemon.State
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), s.Argv[0], s.Argv[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "HOOKFABRIC_STATE=" + state, "HOOKFABRIC_AGENTSHIM=" + self,
		"HOOKFABRIC_TEST_DIR=" + dir, "HOOKFABRIC_TEST_MODE=" + shimVar, "SECRET_OF_THE_AGENT=hunter2"}, s.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(s.Argv, " "), err, out)
	}
	if pid, err := os.ReadFile(filepath.Join(dir, "hanging")); err == nil && alive(string(pid)) {
		t.Errorf("the shim's child %s still runs after the script\n%s", pid, out)
	}
	return string(out)
}

// readAll reads the files in a folder, so that `go test` reruns a cached test after
// they change.
func readAll(t *testing.T, dir string) {
	t.Helper()
	here := os.DirFS(dir)
	err := fs.WalkDir(here, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			_, err = fs.ReadFile(here, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
