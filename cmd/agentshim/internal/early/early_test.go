//go:build linux && (amd64 || arm64)

package early

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/schema"
)

// What is asked is what package frame reads, and what it writes is read here.
func TestBothSpeakTheSame(t *testing.T) {
	word := rapid.StringMatching(`[a-zA-Z0-9/:. é]{0,200}`)
	rapid.Check(t, func(t *rapid.T) {
		c := command{runtime: word.Draw(t, "runtime"), event: word.Draw(t, "event"), agent: word.Draw(t, "agent"), unreachable: "deny"}
		s := surroundings{nats: word.Draw(t, "nats"), env: []string{"CODEX_HOME", word.Draw(t, "home")}}
		payload := rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
		m, err := frame.Read(bytes.NewReader(request(&c, &s, "id", 1500*millisecond, payload)), frame.MaxRequest)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"runtime": c.runtime, "event": c.event, "agent": c.agent, "unreachable": "deny", "id": "id", "nats": s.nats,
			"left": "1500000us", "env:CODEX_HOME": s.env[1]}
		maps.DeleteFunc(want, func(_, v string) bool { return v == "" })
		if !maps.Equal(m.Words, want) || !bytes.Equal(m.Body, payload) || m.Kind != frame.Hook {
			t.Errorf("%+v, not %v", m, want)
		}
		if d, err := time.ParseDuration(m.Words["left"]); err != nil || d != 1500*time.Millisecond {
			t.Errorf("%v, %v", d, err)
		}
		said := &frame.Message{Kind: frame.Answer, Body: payload, Words: map[string]string{"exit": "2", "stderr": c.event, "reason": c.agent, "more": "x"}}
		a, ok := decode(frame.Append(nil, said)[4:])
		if !ok || a.exit != 2 || a.stderr != c.event || a.log != c.agent || !bytes.Equal(a.stdout, payload) {
			t.Errorf("%+v, %t", a, ok)
		}
	})
	if m, err := frame.Read(bytes.NewReader(written()), frame.MaxRequest); err != nil || m.Kind != frame.Written {
		t.Errorf("%+v, %v", m, err)
	}
	for mine, theirs := range map[byte]frame.Kind{kindHook: frame.Hook, kindWritten: frame.Written, kindBeat: frame.Beat, kindAnswer: frame.Answer, kindElse: frame.Elsewhere} {
		if mine != byte(theirs) {
			t.Errorf("%q is %q", mine, theirs)
		}
	}
	if maxPayload != schema.MaxEvent || maxAnswer != frame.MaxAnswer {
		t.Error("the bounds are others")
	}
}

// What the daemon says is read as package frame reads it, or not at all.
func FuzzAnAnswer(f *testing.F) {
	f.Add(frame.Append(nil, &frame.Message{Kind: frame.Answer, Words: map[string]string{"exit": "0"}, Body: []byte("x")})[4:])
	f.Add([]byte("r\x01\xff\xff\xff\xff\x7f"))
	f.Add([]byte("e\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, ok := decode(data)
		m, err := frame.Decode(data)
		if ok && (err != nil || a.stderr != m.Words["stderr"] || a.log != m.Words["reason"] || !bytes.Equal(a.stdout, m.Body)) {
			t.Errorf("%+v is read as %+v, %v", a, m, err)
		}
	})
}

func TestTimesAreReadAsTheyAreWritten(t *testing.T) {
	for _, s := range []string{"1s", "60s", "1500ms", "2m", "0s", "-1s", "1.5s", "1h", "s", "", "1", "99999999s", "1s ", "١s"} {
		want, err := time.ParseDuration(s)
		n, ok := duration(s)
		if ok && (err != nil || n != want.Nanoseconds()) {
			t.Errorf("%q is %d, not %v, %v", s, n, want, err)
		}
		if simple := slices.Contains([]string{"1s", "60s", "1500ms", "2m"}, s); ok != simple {
			t.Errorf("%q is read: %t", s, ok)
		}
	}
	for _, d := range []time.Duration{time.Millisecond, 30 * time.Millisecond, time.Second, time.Minute, time.Hour} {
		if got := left(d.Nanoseconds()); got != (d - schema.Margin(d)).Nanoseconds() {
			t.Errorf("of %v there is %v left", d, time.Duration(got))
		}
	}
}

func TestOnlySimpleCommandLinesAreTaken(t *testing.T) {
	for line, want := range map[string]bool{
		"hook --runtime claude --event PreToolUse --timeout 60s": true,
		"hook --runtime=claude --start":                          true,
		"hook --runtime=claude --managed":                        false,
		"hook --runtime claude --unreachable deny":               true,
		"hook --runtime claude --workspaces /tmp":                true,
		"hook --runtime claude --workspaces tmp":                 false,
		"hook --runtime claude --nats nats://x":                  false,
		"hook --runtime claude --socket /x --state /y":           true,
		"hook --runtime claude --socket x":                       false,
		"hook --runtime claude --state /x/../y":                  false,
		"hook --runtime claude --managed=false":                  false,
		"hook --runtime claude --unreachable perhaps":            false,
		"hook --runtime claude --timeout 1h30m":                  false,
		"hook --runtime claude --event":                          false,
		"hook --runtime claude more":                             false,
		"hook --help":                                            false,
		"hook":                                                   false,
		"serve":                                                  false,
	} {
		if _, ok := parse(strings.Fields(line)); ok != want {
			t.Errorf("%s: %t", line, ok)
		}
	}
	if _, ok := parse(nil); ok {
		t.Error("no command is taken")
	}
}

func TestAPathIsTakenOnlyInItsOneForm(t *testing.T) {
	for _, path := range []string{"/a", "/a/b", "/a/.b", "/a/..b", "/a//b", "/a/./b", "/a/../b", "/a/", "/", "/..", "//a", "/a/.", "/.../x"} {
		if got, want := clean(path), path == filepath.Clean(path) && path != "/"; got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// What the system tells is what package os tells later.
func TestCommandLineAndEnvironmentAreReadAsTheyAre(t *testing.T) {
	args, ok := words("/proc/self/cmdline\x00", maxArguments)
	if !ok || !slices.Equal(args, os.Args) {
		t.Errorf("%q, %t, not %q", args, ok, os.Args)
	}
	if _, ok := words("/proc/self/cmdline\x00", 3); ok {
		t.Error("what is too long is taken")
	}
	if _, ok := words("/proc/self/none\x00", maxArguments); ok {
		t.Error("what is not there is taken")
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCommandLineAndEnvironmentAreReadAsTheyAre$")
	if os.Getenv("EARLY_TEST") != "" {
		environ, ok := words("/proc/self/environ\x00", maxEnvironment)
		if !ok || !slices.Contains(environ, "EARLY_TEST=é b=c") || len(environ) != len(os.Environ()) {
			t.Errorf("%q, %t, not %q", environ, ok, os.Environ())
		}
		return
	}
	c.Env = append(os.Environ(), "EARLY_TEST=é b=c")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAnIDIsOneOfVersionSeven(t *testing.T) {
	s, ok := newID()
	id, err := uuid.Parse(s)
	if !ok || err != nil || id.Version() != 7 || id.Variant() != uuid.RFC4122 || s != id.String() {
		t.Fatalf("%s, %t, %v", s, ok, err)
	}
	sec, nsec := id.Time().UnixTime()
	if off := time.Since(time.Unix(sec, nsec)); off < -time.Minute || off > time.Minute {
		t.Errorf("%s is %v off", s, off)
	}
}

func TestTheAgeOfAProcessIsFound(t *testing.T) {
	if n, ok := startOf([]byte("7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20")); !ok || n != 4711 {
		t.Errorf("%d, %t", n, ok)
	}
	for _, s := range []string{"", "7 (a) S", ")", "7 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x 20"} {
		if _, ok := startOf([]byte(s)); ok {
			t.Errorf("%q tells an age", s)
		}
	}
	if a := age(); a <= 0 {
		t.Errorf("this process is %d ns old", a)
	}
}

// The program's own environment is looked at in the same words.
func TestTheEnvironmentSaysWhereTheDaemonIs(t *testing.T) {
	for name, c := range map[string]struct {
		env    []string
		socket string
		ok     bool
	}{
		"a login":                    {[]string{"XDG_RUNTIME_DIR=/run/user/1", "HOME=/h"}, "/run/user/1/hookfabric/agentshim.sock", true},
		"no login":                   {[]string{"HOME=/h"}, "/h/.local/state/hookfabric/agentshim.sock", true},
		"a folder for state":         {[]string{"HOME=/h", "XDG_STATE_HOME=/s"}, "/s/hookfabric/agentshim.sock", true},
		"one of ours":                {[]string{"HOME=/h", "XDG_STATE_HOME=/s", "HOOKFABRIC_STATE=/o"}, "/o/agentshim.sock", true},
		"one that is relative":       {[]string{"HOME=/h", "HOOKFABRIC_STATE=o"}, "o/agentshim.sock", false},
		"one socket":                 {[]string{"HOME=/h", "HOOKFABRIC_SOCKET=/x/s"}, "/x/s", true},
		"one folder twice":           {[]string{"HOME=/h", "HOOKFABRIC_STATE=/o", "HOOKFABRIC_STATE=/p"}, "/o/agentshim.sock", true},
		"a folder, or none":          {[]string{"HOME=/h", "HOOKFABRIC_STATE=", "HOOKFABRIC_STATE=/p"}, "/h/.local/state/hookfabric/agentshim.sock", true},
		"nothing":                    {nil, "", false},
		"a time":                     {[]string{"HOME=/h", "HOOKFABRIC_TIMEOUT=1s"}, "", false},
		"credentials somewhere else": {[]string{"HOME=/h", "HOOKFABRIC_CREDS=x"}, "/h/.local/state/hookfabric/agentshim.sock", false},
	} {
		t.Run(name, func(t *testing.T) {
			if s, ok := look(&command{}, c.env); ok != c.ok || s.socket != c.socket {
				t.Errorf("%q, %t", s.socket, ok)
			}
		})
	}
	for _, c := range []command{{socket: "/c"}, {state: "/c", socket: "/c"}} {
		if s, ok := look(&c, []string{"XDG_RUNTIME_DIR=/r", "HOOKFABRIC_SOCKET=/e"}); !ok || s.socket != "/c" {
			t.Errorf("the command line names one, and it is %q, %t", s.socket, ok)
		}
	}
	s, _ := look(&command{}, []string{"HOME=/h", "GEMINI_CWD=/w", "GEMINI_API_KEY=secret", "HOOKFABRIC_TOKEN=secret"})
	if !slices.Equal(s.env, []string{"GEMINI_CWD", "/w"}) {
		t.Errorf("%q is passed on", s.env)
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here: how old a process is stays untested")
	}
}
