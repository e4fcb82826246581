package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// left lists the files in a folder.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// put writes a file with the given age.
func put(t *testing.T, path string, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func ends(t *testing.T, workspaces string) {
	t.Helper()
	x, _ := exchanging(dialect.Moment{Name: "end", Event: schema.SessionEnd}, &asked{})
	x.Workspaces = workspaces
	x.Run(t.Context(), []byte("payload"), nil)
}

func TestTheLongTextsOfASessionGoWithIt(t *testing.T) {
	project := t.TempDir()
	dir := filepath.Join(project, "temp_workspaces")
	x, stderr := exchanging(after, &asked{v: schema.Verdict{Injections: []schema.Injection{{Content: strings.Repeat("long ", 2000)}}}})
	x.Workspaces = project
	x.Run(t.Context(), []byte("Bash"), nil)
	if names := left(t, dir); len(names) != 1 || !strings.HasPrefix(names[0], sessionPrefix("s1")) || stderr.Len() > 0 {
		t.Fatalf("%v, %s", names, stderr)
	}
	others := []string{"mine.txt", textName("s2", "x"), "text-of-mine.md"}
	for _, name := range others {
		put(t, filepath.Join(dir, name), 0)
	}
	ends(t, project)
	if names := left(t, dir); !slices.Equal(names, []string{"mine.txt", textName("s2", "x"), "text-of-mine.md"}) {
		t.Errorf("%v are left", names)
	}
	for _, name := range others {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ends(t, project)
	if names := left(t, project); len(names) > 0 {
		t.Errorf("the project has %v", names)
	}
}

// A session that never ends leaves its texts for a week.
func TestLongTextsThatAreOldGo(t *testing.T) {
	project := t.TempDir()
	dir := filepath.Join(project, "temp_workspaces")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, textName("s2", "old")), 8*24*time.Hour)
	put(t, filepath.Join(dir, textName("s2", "new")), 6*24*time.Hour)
	put(t, filepath.Join(dir, "mine.txt"), 8*24*time.Hour)
	x, _ := exchanging(after, &asked{v: schema.Verdict{Injections: []schema.Injection{{Content: strings.Repeat("long ", 2000)}}}})
	x.Workspaces = project
	x.Run(t.Context(), []byte("Bash"), nil)
	if names := left(t, dir); len(names) != 3 || slices.Contains(names, textName("s2", "old")) {
		t.Errorf("%v are left", names)
	}
}

// If a repository has a link in place of the folder, the shim deletes nothing behind it.
func TestNoTextBehindALinkIsDeleted(t *testing.T) {
	project, elsewhere := t.TempDir(), t.TempDir()
	name := textName("s1", "x")
	put(t, filepath.Join(elsewhere, name), 30*24*time.Hour)
	if err := os.Symlink(elsewhere, filepath.Join(project, "temp_workspaces")); err != nil {
		t.Skipf("THAT NO LINK IS FOLLOWED IS NOT TESTED: no link can be made here: %v", err)
	}
	ends(t, project)
	if names := left(t, elsewhere); len(names) != 1 {
		t.Error("a file behind a link was deleted")
	}
	if names := left(t, project); len(names) != 1 {
		t.Error("the link was deleted")
	}
}
