package install_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A tree holds the files below a folder, by their slash-separated paths.
type tree map[string]string

// plant writes files into a new folder.
func plant(t testing.TB, files tree) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// harvest returns the files below a folder. It leaves out the times in the names of copies.
func harvest(t testing.TB, dir string) tree {
	files := tree{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		name, _, kept := strings.Cut(filepath.ToSlash(name), ".before-agentshim-")
		if kept {
			name += ".before"
		}
		files[name] = string(data)
		if rest, is := strings.CutPrefix(files[name], "// The fabric's plugin"); is { // other tests check the rest of the plugin
			_, rest, _ = strings.Cut(rest, "\nconst SETTINGS = ")
			line, _, _ := strings.Cut(rest, "\n")
			files[name] = "const SETTINGS = " + line + "\n"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const installedAt = "2026-11-22T10:00:00Z"

// request returns a request for an installation below dir.
func request(dir, runtime string, scope install.Scope) *install.Request {
	return &install.Request{
		Runtime: runtime, Scope: scope, Version: probe.Version{2, 1, 329},
		Machine: install.Machine{Root: filepath.Join(dir, "root"), Home: "/home/u", Dir: filepath.Join(dir, "project"), OS: "linux"},
		Hook:    install.Hook{Shim: "/opt/agentshim/bin/agentshim"},
	}
}

// do applies a plan, and reports whether it changed anything.
func do(t testing.TB, p install.Plan, err error) bool {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	now, _ := time.Parse(time.RFC3339, installedAt)
	changed, diff := p.Changed(), p.Diff()
	if changed != (diff != "") {
		t.Errorf("it changes something: %v, but the diff is %q", changed, diff)
	}
	if _, err := p.Apply(now); err != nil {
		t.Fatal(err)
	}
	return changed
}

// TestTrees installs each runtime in each scope, without files and beside the hooks of others. Each golden
// file has the tree before (written by hand), and the results of both installations.
func TestTrees(t *testing.T) {
	for _, name := range install.Names() {
		for _, scope := range install.Scopes(name) {
			t.Run(name+"-"+string(scope), func(t *testing.T) {
				file := filepath.Join("testdata", name+"-"+string(scope)+".txtar")
				golden := open(t, file)
				fresh := walk(t, name, scope, tree{})
				after := walk(t, name, scope, golden.below("before/"))
				want := slices.Concat(golden.files("before/"), fresh.files("fresh/"), after.files("after/"))
				if *update {
					golden.archive.Files = want
					if err := os.WriteFile(file, txtar.Format(golden.archive), 0o600); err != nil {
						t.Fatal(err)
					}
					return
				}
				if diff := cmp.Diff(string(txtar.Format(golden.archive)), string(txtar.Format(&txtar.Archive{Comment: golden.archive.Comment, Files: want}))); diff != "" {
					t.Errorf("%s (-want +got; 'go test -update' writes it anew):\n%s", file, diff)
				}
			})
		}
	}
}

// walk installs, installs again, updates an older installation, and uninstalls. It returns the result of
// the first installation.
func walk(t *testing.T, name string, scope install.Scope, before tree) tree {
	dir := plant(t, before)
	r := request(dir, name, scope)
	p, err := r.Install(t.Context())
	if !do(t, p, err) {
		t.Error("there was nothing to install")
	}
	after := harvest(t, dir)
	p, err = r.Install(t.Context())
	if do(t, p, err) {
		t.Errorf("a second installation changed something:\n%s", cmp.Diff(after, harvest(t, dir)))
	}
	older := request(dir, name, scope)
	older.Hook = install.Hook{Shim: "/usr/local/my bin/agentshim-0.0.1", Timeout: 7 * time.Second, Agent: "it's me", Unreachable: "allow", Approve: true, Models: true}
	p, err = older.Install(t.Context())
	if !do(t, p, err) {
		t.Error("another installation changed nothing")
	}
	p, err = r.Install(t.Context())
	do(t, p, err)
	if diff := cmp.Diff(after, harvest(t, dir)); diff != "" {
		t.Errorf("after an update it is not as after the first installation:\n%s", diff)
	}
	p, err = r.Uninstall(t.Context())
	if !do(t, p, err) {
		t.Error("there was nothing to uninstall")
	}
	if diff := cmp.Diff(before, harvest(t, dir)); diff != "" {
		t.Errorf("something stayed behind:\n%s", diff)
	}
	p, err = r.Uninstall(t.Context())
	if do(t, p, err) {
		t.Error("a second uninstallation changed something")
	}
	return after
}

type goldenFile struct{ archive *txtar.Archive }

func open(t *testing.T, file string) goldenFile {
	a, err := txtar.ParseFile(file)
	if err != nil && (!*update || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	if a == nil {
		a = &txtar.Archive{}
	}
	return goldenFile{a}
}

func (g goldenFile) files(prefix string) (all []txtar.File) {
	for _, f := range g.archive.Files {
		if strings.HasPrefix(f.Name, prefix) {
			all = append(all, f)
		}
	}
	return all
}

func (g goldenFile) below(prefix string) tree {
	files := tree{}
	for _, f := range g.files(prefix) {
		files[strings.TrimPrefix(f.Name, prefix)] = string(f.Data)
	}
	return files
}

func (files tree) files(prefix string) (all []txtar.File) {
	for name, text := range files {
		all = append(all, txtar.File{Name: prefix + name, Data: []byte(text)})
	}
	slices.SortFunc(all, func(a, b txtar.File) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return all
}
