package clients_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/cmd/e2e/clients/released"
)

// A home is where one client lives, with nothing in it but what a test puts there.
type home struct {
	t testing.TB
	released.Client
	manner
	dir     string   // the home itself
	project string   // where the client works
	path    string   // the client's program
	more    []string // variables that the way to the fabric needs
	daemon  *process // what serve started last; nil: nothing
}

// eachClient runs a test for every client that is to be tried.
func eachClient(t *testing.T, test func(*testing.T, *home), names ...string) {
	t.Helper()
	clients, err := wanted()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range released.All() {
		if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if !slices.Contains(clients, c) {
				t.Skipf("%s IS NOT TRIED: %s says so", c.Name, variable)
			}
			path, err := c.Command()
			if err != nil && os.Getenv(variable) == "" {
				t.Skipf("%s IS NOT TRIED: %v", c.Name, err)
			} else if err != nil {
				t.Fatal(err)
			}
			t.Parallel()
			h := &home{t: t, Client: c, manner: manners()[c.Name], dir: short(t), path: path}
			h.project = filepath.Join(h.dir, "project")
			h.write("project/README", "nothing to see\n")
			for name, content := range h.files {
				h.write(name, content)
			}
			test(t, h)
		})
	}
}

// short is a folder whose name leaves room for that of a socket in it, which the
// system bounds.
func short(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "home") //nolint:usetesting // that one's names are as long as the tests'
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// write writes a file in the home and returns its path.
func (h *home) write(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// env returns the environment of programs in the home: PATH of the test, and proxies that do not exist.
func (h *home) env() []string {
	env := []string{"HOME=" + h.dir, "PATH=" + os.Getenv(programsVar) + ":" + filepath.Dir(h.path) + ":" + os.Getenv("PATH"),
		"LANG=C.UTF-8", "TERM=dumb", "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"=http://127.0.0.1:9")
	}
	return append(env, h.more...)
}

// play runs the client to its end with a model that follows a script.
func (h *home) play(script ...model.Turn) *played {
	h.t.Helper()
	p, err := h.try(script...)
	if err != nil {
		h.t.Fatalf("%s: %v", h.Name, err)
	}
	return p
}

// try is play for a client that may say by its exit code that it was not let.
func (h *home) try(script ...model.Turn) (*played, error) {
	h.t.Helper()
	m := model.Start(script...)
	defer m.Close()
	return h.with(m)
}

// with runs the client to its end with a model.
func (h *home) with(m *model.Server) (*played, error) {
	h.t.Helper()
	said := func(all []string) (out []string) {
		for _, s := range all {
			out = append(out, strings.ReplaceAll(s, "@MODEL@", m.URL))
		}
		return out
	}
	out, err := run(h.t.Context(), h.project, append(h.env(), said(h.manner.env)...), h.path, said(h.args)...)
	p := &played{t: h.t, home: h, requests: m.Requests(), output: out}
	h.t.Cleanup(func() {
		if h.t.Failed() {
			h.t.Logf("%s said:\n%s\nand its model was asked %d times, and at %v", h.Name, out, len(p.requests), m.Odd())
		}
	})
	return p, err
}

// A played is what came of a client's run.
type played struct {
	t        testing.TB
	home     *home
	requests []model.Request
	output   string
}

// sees reports whether the model sees a text at a turn, and did not see it before.
func (p *played) sees(turn int, text string) bool {
	now, before := false, false
	for _, r := range p.requests {
		has := strings.Contains(r.Texts(), text)
		now = now || has && r.Turn == turn
		before = before || has && r.Turn < turn
	}
	return now && !before
}

// mustSee fails the test unless the model sees a text at a turn, and not before it.
func (p *played) mustSee(turn int, text string) {
	p.t.Helper()
	if !p.sees(turn, text) {
		p.t.Errorf("at turn %d the model does not see %q as a new text; the new texts are:\n%s", turn, text, strings.Join(p.newTexts(turn), "\n"))
	}
}

// newTexts returns the texts that the model sees at a turn and did not see at the previous one.
func (p *played) newTexts(turn int) (all []string) {
	known := map[string]bool{}
	for _, r := range p.requests {
		for line := range strings.Lines(r.Texts()) {
			if line = strings.TrimSpace(line); r.Turn < turn {
				known[line] = true
			} else if r.Turn == turn && !known[line] {
				all = append(all, line)
			}
		}
	}
	return all
}

// ran reports whether a command that touches a file of this name has run.
func (h *home) ran(name string) bool {
	_, err := os.Stat(filepath.Join(h.project, name))
	return err == nil
}
