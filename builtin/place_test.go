package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// The fast checks of a path agree with these patterns.
func TestTheFastChecksOfAPathMissNothing(t *testing.T) {
	replaced := regexp.MustCompile("^[~$]|\\$[{(]|^@[/.~]|^[\"'`]|[\"'`]$")
	fileURL := regexp.MustCompile(`(?i)^file:`)
	ofWindows := regexp.MustCompile(`^[A-Za-z]:|\\`)
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"~", "$", "{", "(", "@", "/", ".", "\"", "'", "`", "\\", ":", "C", "z", "1", "file", "FiLe", "proc", "PROC", "self", "ſelf", "dev", "Dev", "fd", "stdin", ".vol", "a", "é", "ſ"})
		path := strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(t, "path"), "")
		for name, looks := range map[string][2]bool{
			"replaced":        {isReplaced(path), replaced.MatchString(path)},
			"a URL":           {isFileURL(path), fileURL.MatchString(path)},
			"of Windows":      {isOfWindows(path), ofWindows.MatchString(path)},
			"a view":          {isProcessView("/" + path), processView.MatchString("/" + path)},
			"a view's folder": {isProcessView("/proc/" + path), processView.MatchString("/proc/" + path)},
		} {
			if looks[0] != looks[1] {
				t.Errorf("%s: %q: %v, want %v", name, path, looks[0], looks[1])
			}
		}
	})
}

// A path of ASCII needs no table of Unicode.
func TestASCIIPathsFoldLikeUnicode(t *testing.T) {
	for r := range rune(0x80) {
		text := "/a" + string(r)
		if got, want := folded(text), norm.NFKC.String(strings.ToLower(text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got, want := folded("/É\u00adſ/ﬁ"), "/és/fi"; got != want {
		t.Errorf("it becomes %q, want %q", got, want)
	}
}

// However many folders and patterns a call names, to refuse it takes time in proportion.
func TestManyFoldersAndPatternsTakeLinearTime(t *testing.T) {
	list := func(n int) string {
		return `["` + strings.Join(slices.Repeat([]string{"src"}, n), `","`) + `"]`
	}
	for name, c := range map[string]struct {
		short int
		made  func(n int) *schema.Event
	}{
		"patterns in each folder": {250, func(n int) *schema.Event {
			return &schema.Event{ToolName: "Glob", ToolInput: jsontext.Value(`{"paths":` + list(n) + `,"patterns":` + list(n) + `}`)}
		}},
		"paths that the shim found": {1500, func(n int) *schema.Event {
			var found []string
			for i := range n {
				found = append(found, fmt.Sprintf("%d", i))
			}
			args, err := schema.Marshal(map[string]any{"paths": found})
			if err != nil {
				t.Fatal(err)
			}
			return &schema.Event{ToolName: "Read", ToolKind: schema.KindRead, ToolInput: jsontext.Value(`{"file_path":"x"}`), ToolArgs: args}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := permission(t, map[string]any{"allow": []any{"."}})
			took := func(n int) time.Duration {
				best := time.Hour
				e := c.made(n)
				e.HookType, e.Cwd = schema.PreToolUse, t.TempDir()
				for range 3 {
					start := time.Now()
					res, err := h.Handle(t.Context(), e)
					best = min(best, time.Since(start))
					if err != nil || !strings.Contains(res.Reason, "the limit is 1000 per call") {
						t.Fatalf("%+v, %v", res, err)
					}
				}
				return best
			}
			short, long := time.Hour, time.Hour
			for range 20 { // a machine with other work may take long for either
				short, long = min(short, took(c.short)), min(long, took(8*c.short))
				if long <= 24*short+20*time.Millisecond {
					return
				}
			}
			t.Errorf("%d take %v, and eight times as many %v", c.short, short, long)
		})
	}
}

// BenchmarkPathPermission is what the hook costs a call that it has nothing against.
func BenchmarkPathPermission(b *testing.B) {
	dir := work(b)
	if err := os.MkdirAll(filepath.Join(dir, "w/src/a/b"), 0o755); err != nil {
		b.Fatal(err)
	}
	h := permission(b, map[string]any{"allow": []any{"."}, "deny": []any{"./secret", "./.env", "./.git/config"}, "read_only": []any{"./vendor"}})
	for name, c := range map[string]call{
		"read a file":    {"Read", `{"file_path":"` + dir + `/w/src/main.go"}`, ""},
		"write a file":   {"Write", `{"file_path":"src/a/b/new.go","content":"x"}`, ""},
		"call no file":   {"mcp__x__say", `{"text":"hello"}`, ""},
		"list a pattern": {"Glob", `{"pattern":"src/**/*.go"}`, ""},
	} {
		b.Run(name, func(b *testing.B) {
			e := &schema.Event{HookType: schema.PreToolUse, ToolName: c.tool, ToolInput: jsontext.Value(c.input), Cwd: dir + "/w"}
			b.ReportAllocs()
			for b.Loop() {
				if res, err := h.Handle(b.Context(), e); err != nil || res.Decision != schema.None {
					b.Fatalf("%+v, %v", res, err)
				}
			}
		})
	}
}
