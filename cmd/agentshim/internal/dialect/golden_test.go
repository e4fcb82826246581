package dialect_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

var update = flag.Bool("update", false, "write what dialects read and answer into the recorded exchanges")

// An exchange is one file below testdata/<runtime>: the runtime's payload, the fabric's event for it, and the
// answer to each verdict. The file's name begins with the runtime's name of the moment:
// PreToolUse.Bash.txtar. A new file needs only the comment and the payload; `go test -update` writes the rest.
type exchange struct {
	runtime, path string
	moment        dialect.Moment
	archive       *txtar.Archive
}

// exchanges returns all recorded exchanges.
func exchanges(t testing.TB) []*exchange {
	t.Helper()
	var all []*exchange
	for _, runtime := range dialect.Names() {
		dir := filepath.Join("testdata", runtime)
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".txtar") {
				all = append(all, read(t, runtime, path))
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if len(all) == 0 {
		t.Fatal("there are no recorded exchanges below testdata")
	}
	return all
}

func read(t testing.TB, runtime, path string) *exchange {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name, d := filepath.Base(path), runtimeOf(t, runtime)
	for _, m := range d.Moments() {
		if strings.HasPrefix(name, m.Name+".") {
			return &exchange{runtime: runtime, path: path, moment: m, archive: a}
		}
	}
	t.Fatalf("%s: the runtime %s has no event %q; begin the file's name with one that it has", path, runtime, name)
	return nil
}

func runtimeOf(t testing.TB, name string) dialect.Dialect {
	t.Helper()
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (x *exchange) name() string { return strings.TrimPrefix(x.path, "testdata/") }

// section returns a part of the file, and whether it exists.
func (x *exchange) section(name string) (string, bool) {
	for _, f := range x.archive.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

func (x *exchange) set(name, data string) {
	for i := range x.archive.Files {
		if f := &x.archive.Files[i]; f.Name == name {
			f.Data = []byte(data)
			return
		}
	}
	x.archive.Files = append(x.archive.Files, txtar.File{Name: name, Data: []byte(data)})
}

// input returns the hook's input: the section payload.json, and the variables of the section env, one NAME=value in
// a line.
func (x *exchange) input(t testing.TB) dialect.Input {
	t.Helper()
	payload, ok := x.section("payload.json")
	if !ok {
		t.Fatalf("%s has no section payload.json", x.path)
	}
	env := map[string]string{}
	lines, _ := x.section("env")
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return dialect.Input{Moment: x.moment, Payload: []byte(payload), Env: func(name string) string { return env[name] }}
}

// Each recorded payload decodes as its file says, and the answer to each verdict has the bytes in the file.
func TestExchangesAreAsRecorded(t *testing.T) {
	for _, x := range exchanges(t) {
		t.Run(x.name(), func(t *testing.T) {
			d := runtimeOf(t, x.runtime)
			c, err := d.Decode(x.input(t))
			x.check(t, "event", told(t, c, err))
			if c.Faulty = err != nil; c.Faulty && c.Event.HookType == "" {
				t.Fatalf("the payload cannot be read, and is nobody's: %v", err)
			}
			var b strings.Builder
			for _, n := range verdicts(c.Moment.Event) {
				b.WriteString(answered(t, d, c, n))
			}
			refused := d.Refuse(c.Moment, "the shim failed")
			b.WriteString("## refuse\n" + bytesOf(refused))
			x.check(t, "answers", b.String())
			if *update {
				if err := os.WriteFile(x.path, txtar.Format(x.archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// check compares a section, or with -update writes it.
func (x *exchange) check(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		x.set(name, got)
		return
	}
	want, ok := x.section(name)
	if !ok {
		t.Fatalf("%s has no section %s; run go test -update and look at what it writes", x.path, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, section %s (-file +code):\n%s", x.path, name, diff)
	}
}

// told returns what a dialect read, with the event as indented JSON.
func told(t *testing.T, c *dialect.Call, err error) string {
	t.Helper()
	data, mErr := schema.Marshal(&c.Event)
	if mErr != nil {
		t.Fatal(mErr)
	}
	v := jsontext.Value(data)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "moment %s\n", c.Moment.Name)
	for _, line := range []struct{ name, value string }{
		{"key", c.Key}, {"pair", c.Pair}, {"subagent", c.Subagent}, {"form", c.Form},
	} {
		if line.value != "" {
			fmt.Fprintf(&b, "%s %s\n", line.name, line.value)
		}
	}
	if c.ByID {
		b.WriteString("by id\n")
	}
	if err != nil {
		b.WriteString("faulty\n")
	}
	return b.String() + string(v) + "\n"
}

// answered returns the answer to one verdict, and how Express changed the verdict.
func answered(t *testing.T, d dialect.Dialect, c *dialect.Call, n named) string {
	t.Helper()
	said, later, lost := dialect.Express(c.Moment, &n.verdict)
	a, err := d.Encode(c, said)
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	text := "## " + n.name + "\n" + bytesOf(a)
	for _, l := range lost {
		text += "lost: " + l + "\n"
	}
	for _, f := range slices.Sorted(maps.Keys(dialect.Flags(said))) {
		text += "flag: " + f + "\n"
	}
	for _, in := range later {
		text += "later: " + in.Content + "\n"
	}
	return text
}

// bytesOf formats an answer.
func bytesOf(a dialect.Answer) string {
	var b strings.Builder
	if a.Exit != 0 {
		fmt.Fprintf(&b, "exit %d\n", a.Exit)
	}
	if len(a.Stdout) > 0 {
		b.WriteString("stdout: " + strings.TrimSuffix(string(a.Stdout), "\n") + "\n")
	}
	if a.Stderr != "" {
		b.WriteString("stderr: " + strings.TrimSuffix(a.Stderr, "\n") + "\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
