package client_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/snapshot"
	"github.com/hookfabric/hookfabric/schema"
)

// space returns a workspace with one file.
func (s *store) space(name, content string) schema.Workspace {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "answer.txt"), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	var data bytes.Buffer
	if _, err := snapshot.Pack(s.t.Context(), dir, &data); err != nil {
		s.t.Fatal(err)
	}
	w := schema.Workspace{Name: name, Path: schema.WorkspacePath(name), Snapshot: *s.Object(data.String())}
	s.Lock()
	defer s.Unlock()
	s.Workspaces = append(s.Workspaces, w)
	return w
}

func TestWorkspacesAreUnpackedBeforeTheirTextIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		var log bytes.Buffer
		s := newStore(t, client.Options{Workspaces: folder, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		one, ten := s.space("agent1", "the first"), s.space("agent10", "the tenth")
		s.space("agent2", "no text names it")
		in := bustest.Item(1, "")
		in.Object = s.Object("large: " + ten.Path + "/answer.txt")
		s.Put(bustest.Item(2, ten.Path+", then "+one.Path+"/answer.txt"), in)
		s.Restart = &schema.Restart{Content: "read " + one.Path}
		v := s.must()
		path := func(name string) string { return filepath.Join(folder, "temp_workspaces", name) }
		want := []string{path("agent10") + ", then " + path("agent1") + "/answer.txt", "large: " + path("agent10") + "/answer.txt"}
		if diff := cmp.Diff(want, contents(v)); diff != "" || v.Restart.Content != "read "+path("agent1") {
			t.Errorf("%s, %s", diff, v.Restart.Content)
		}
		for name, content := range map[string]string{"agent1": "the first", "agent10": "the tenth"} {
			if data, err := os.ReadFile(filepath.Join(path(name), "answer.txt")); err != nil || string(data) != content {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if _, err := os.Stat(path("agent2")); !os.IsNotExist(err) {
			t.Errorf("an unnamed workspace was unpacked: %v", err)
		}
		if len(v.Workspaces) != 2 || v.Workspaces[0].Path != path("agent1") {
			t.Errorf("%+v", v.Workspaces)
		}
		if n := strings.Count(log.String(), "was unpacked"); n != 2 || !strings.Contains(log.String(), path("agent10")) {
			t.Errorf("%d are logged: %s", n, &log)
		}
		fetched := s.Fetches
		s.client.Handed(v.EventID)
		s.Put(bustest.Item(3, one.Path))
		if v := s.must(); s.Fetches != fetched || contents(v)[0] != path("agent1") {
			t.Errorf("an unpacked workspace was fetched again: %v", contents(v))
		}
	})
}

// A long text is fetched, and the author's paths in it are replaced. For a third agent,
// files from an earlier text are named if they exist.
func TestFetchedTextsHaveNoPathsOfTheirAuthor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		s := newStore(t, client.Options{Workspaces: folder})
		s.space("Agent_2", "text")
		if err := os.MkdirAll(filepath.Join(folder, "temp_workspaces", "agent3"), 0o755); err != nil {
			t.Fatal(err)
		}
		in := bustest.Item(1, "")
		long := strings.Repeat("many words ", 500_000)
		in.Object, in.Folder = s.Object(long+"/w/a/x, /w/a/temp_workspaces/agent3/y, /w/a/temp_workspaces/agent30/z"), &schema.Folder{Name: "Agent_2", Path: "/w/a"}
		s.Put(in)
		v := s.must()
		others := filepath.Join(folder, "temp_workspaces")
		want := others + "/Agent_2/x, " + others + "/agent3/y, hookfabric:temp_workspaces/agent30/z"
		if got := contents(v)[0]; got != long+want {
			t.Errorf("%q, want %q", got[len(long):], want)
		}
		if v.Injections[0].Folder != nil {
			t.Error("the folder is passed on")
		}
	})
}

func TestAnUnavailableWorkspaceIsReportedInTheText(t *testing.T) {
	for name, c := range map[string]struct {
		folder func(t *testing.T) string
		change func(*schema.Workspace)
		says   string
	}{
		"no folder":           {func(*testing.T) string { return "" }, nil, "name one with --workspaces"},
		"a folder that's not": {func(t *testing.T) string { return filepath.Join(t.TempDir(), "gone") }, nil, "gone"},
		"a link in its place": {func(t *testing.T) string {
			dir, out := t.TempDir(), t.TempDir()
			if err := os.Symlink(out, filepath.Join(dir, "temp_workspaces")); err != nil {
				t.Fatal(err)
			}
			return dir
		}, nil, "is no folder"},
		"a name that leads out":        {(*testing.T).TempDir, func(w *schema.Workspace) { w.Name = "../agent2" }, "is not a workspace name"},
		"no name":                      {(*testing.T).TempDir, func(w *schema.Workspace) { w.Name = "" }, "is not a workspace name"},
		"a name with a dot":            {(*testing.T).TempDir, func(w *schema.Workspace) { w.Name = ".lock" }, "is not a workspace name"},
		"a snapshot that's gone":       {(*testing.T).TempDir, func(w *schema.Workspace) { w.Snapshot.Digest = "sha256-00" }, "no such object"},
		"an invalid snapshot":          {(*testing.T).TempDir, func(w *schema.Workspace) { w.Snapshot = schema.Object{Digest: "none", Size: 4} }, "compressed"},
		"a snapshot that is too large": {(*testing.T).TempDir, func(w *schema.Workspace) { w.Snapshot.Size = 1 << 40 }, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, client.Options{Workspaces: c.folder(t)})
				w := s.space("agent2", "text")
				s.Objects["none"] = []byte("none")
				if c.change != nil {
					c.change(&s.Workspaces[0])
				}
				s.Put(bustest.Item(1, "see "+w.Path+" now"))
				v := s.must()
				if got := contents(v)[0]; !strings.HasPrefix(got, "see (workspace unavailable: ") || !strings.Contains(got, c.says) || !strings.HasSuffix(got, ") now") {
					t.Error(got)
				}
				s.client.Handed(v.EventID)
				if len(s.client.Noted("agent/1").Events) != 1 || len(v.Workspaces) != 0 {
					t.Errorf("it is not acknowledged, or still names workspaces: %+v", v.Workspaces)
				}
			})
		})
	}
}

func TestAnEmptyPathIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{Workspaces: t.TempDir()})
		s.space("agent2", "text")
		s.Workspaces[0].Path = ""
		s.Put(bustest.Item(1, "text"))
		if got := contents(s.must()); !slices.Equal(got, []string{"text"}) {
			t.Errorf("%v", got)
		}
	})
}

func TestSlowWorkspacesDoNotDelayTheVerdict(t *testing.T) {
	for _, left := range []time.Duration{100 * time.Millisecond, time.Second, 30 * time.Second} {
		t.Run(left.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, client.Options{Workspaces: t.TempDir()})
				w := s.space("agent2", "text")
				s.Put(bustest.Item(1, "see "+w.Path))
				s.answers(func(verb string, _ *nats.Msg) bool { return verb == schema.VerbFetch })
				start := time.Now()
				v, err := s.fake.ask(left)
				if err != nil || time.Since(start) >= left || time.Since(start) < min(left/2, 10*time.Second) {
					t.Fatalf("%v after %v", err, time.Since(start))
				}
				if got := contents(v)[0]; !strings.Contains(got, "(workspace unavailable: ") {
					t.Error(got)
				}
			})
		})
	}
}
