package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the scripts of testdata/script. Besides the commands of testscript, they use
//
//	up NAME PROGRAM ARG...   start a process; $NAME_URL and $NAME_HTTP have its addresses,
//	                         and $NAME_LISTEN the value of --listen to use them again
//	[!] said NAME PATTERN    wait until its output matches; !: the output does not match
//	tell NAME SIGNAL         send term, int, hup or kill
//	ends NAME CODE           wait until it ends with that exit code
//	[!] get URL [PATTERN]    print the response; !: its status is not a success;
//	                         with a pattern, repeat until it matches
//	fill FILE BYTES          write a file of that many bytes, as a JSON string
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			words, err := filepath.Abs("../../workers/python")
			if err != nil {
				return err
			}
			env.Setenv("PYTHON_WORDS", words) // where programs find massgen and hookfabric
			env.Values[processesKey{}] = make(map[string]*process)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"up": up, "said": said, "tell": tell, "ends": ends, "get": get, "fill": fill,
		},
	})
}

// processesKey finds a script's processes, by the names it gave them.
type processesKey struct{}

func named(ts *testscript.TestScript, name string) *process {
	p := ts.Value(processesKey{}).(map[string]*process)[name]
	if p == nil {
		ts.Fatalf("no process is called %q", name)
	}
	return p
}

func up(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: up NAME PROGRAM ARG...")
	}
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "WORK", "TMPDIR", "XDG_STATE_HOME", "HOOKFABRIC_LISTEN", "HOOKFABRIC_HTTP", "HOOKFABRIC_DATA", "HOOKFABRIC_POOL", "HOOKFABRIC_NATS"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	p, err := launch(ts.MkAbs("."), env, args[1], args[2:]...)
	ts.Check(err)
	ts.Defer(func() {
		p.kill()
		ts.Logf("[%s]\n%s", args[0], p.said)
	})
	ts.Value(processesKey{}).(map[string]*process)[args[0]] = p
	switch args[1] {
	case "nats-server":
		m, err := p.await(0, `ready (nats://\S+)`)
		ts.Check(err)
		ts.Setenv(args[0]+"_URL", m[1])
	case "broker":
		m, err := p.await(0, `(?ms)^  bus +(nats://\S+)$.*^Try next`)
		ts.Check(err)
		ts.Setenv(args[0]+"_URL", m[1])
		ts.Setenv(args[0]+"_LISTEN", strings.TrimPrefix(m[1], "nats://"))
		if m, _ := p.await(0, `(?m)^  http +(http://\S+) |^  hooks`); m[1] != "" {
			ts.Setenv(args[0]+"_HTTP", m[1])
		}
	}
}

func said(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] said NAME PATTERN")
	}
	p := named(ts, args[0])
	if !neg {
		_, err := p.await(0, args[1])
		ts.Check(err)
	} else if strings.Contains(p.said.String(), args[1]) {
		ts.Fatalf("%s said %q", args[0], args[1])
	}
}

func tell(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"term": syscall.SIGTERM, "int": syscall.SIGINT, "hup": syscall.SIGHUP, "kill": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[1]] == 0 {
		ts.Fatalf("usage: tell NAME term|int|hup|kill")
	}
	ts.Check(named(ts, args[0]).signal(signals[args[1]]))
}

func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ends NAME CODE")
	}
	code, err := named(ts, args[0]).wait()
	ts.Check(err)
	if strconv.Itoa(code) != args[1] {
		ts.Fatalf("%s ended with %d, not %s; it said:\n%s", args[0], code, args[1], named(ts, args[0]).said)
	}
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 && len(args) != 2 {
		ts.Fatalf("usage: [!] get URL [PATTERN]")
	}
	var code int
	var body string
	err := eventually("an answer as it should be", func() bool {
		var err error
		code, body, err = fetch(args[0])
		ts.Check(err)
		return len(args) == 1 || (code >= 300) == neg && strings.Contains(body, args[1])
	})
	fmt.Fprint(ts.Stdout(), body)
	ts.Check(err)
	if (code >= 300) != neg {
		ts.Fatalf("the status is %d", code)
	}
}

// fetch makes one HTTP request.
func fetch(url string) (code int, body string, err error) {
	c := http.Client{Timeout: 10 * time.Second}
	resp, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fill FILE BYTES")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := `{"hook_type":"PreToolUse","tool_name":"Write","tool_input":{"content":"` + strings.Repeat("x", n) + `"}}`
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
