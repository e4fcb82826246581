package schema_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestWorkspacesAreMovedAtTheBoundariesOfPaths(t *testing.T) {
	for name, c := range map[string]struct{ text, from, want string }{
		"a file in it":                  {"see /w/a/x.go", "/w/a", "see W/x.go"},
		"the folder itself":             {"/w/a", "/w/a", "W"},
		"with a slash at its end":       {"/w/a/ and /w/a", "/w/a/", "W/ and W"},
		"another folder":                {"/w/ab/x", "/w/a", "/w/ab/x"},
		"a folder with a sign":          {"/w/a-b /w/a_b /w/a.b /w/a+b /w/aä", "/w/a", "/w/a-b /w/a_b /w/a.b /w/a+b /w/aä"},
		"a deeper folder":               {"/x/w/a/y x/w/a ./w/a ~/w/a", "/w/a", "/x/w/a/y x/w/a ./w/a ~/w/a"},
		"the end of a sentence":         {"It is in /w/a. Look!", "/w/a", "It is in W. Look!"},
		"the very end":                  {"It is in /w/a.", "/w/a", "It is in W."},
		"a folder above":                {"/w/a/../b /w/a..b", "/w/a", "W/../b /w/a..b"},
		"in quotes and lists":           {`"/w/a/x",'/w/a',(/w/a):/w/a;PATH=/w/a:/w/a/bin`, "/w/a", `"W/x",'W',(W):W;PATH=W:W/bin`},
		"a URL":                         {"file:///w/a/x", "/w/a", "file://W/x"},
		"twice in a row":                {"/w/a/w/a", "/w/a", "W/w/a"},
		"matches that overlap":          {"/a/a/a/ab", "/a/a", "W/a/ab"},
		"a match inside of none":        {"x/a /a /a", "/a /a", "x/a W"},
		"on Windows":                    {`C:\w\a\x and C:\w\ab`, `C:\w\a`, `W\x and C:\w\ab`},
		"a relative folder":             {"in .massgen/a_ws/x", ".massgen/a_ws", "in W/x"},
		"a word is no folder":           {"put it out", "out", "put it out"},
		"the root is no workspace":      {"/etc/passwd", "/", "/etc/passwd"},
		"no workspace":                  {"/etc/passwd", "", "/etc/passwd"},
		"a path that follows a letter":  {"ä/w/a", "/w/a", "ä/w/a"},
		"no text":                       {"", "/w/a", ""},
		"a text that ends in the midst": {"/w/", "/w/a", "/w/"},
	} {
		if got := strings.ReplaceAll(schema.MoveWorkspace(c.text, c.from, "W"), schema.WorkspacePath("W"), "W"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWorkspacesAreFoundInAllSpellings(t *testing.T) {
	const massgen = "/Users/foo/.massgen/workspaces/agent_a_workspace"
	for name, c := range map[string]struct{ text, from, want string }{
		"an option":                           {"gcc -I/w/a/x -L/w/a -isystem/w/a a-I/w/a", "/w/a", "gcc -IA/x -LA -isystemA a-I/w/a"},
		"an @ before":                         {"curl -d @/w/a/x me@/w/a", "/w/a", "curl -d @A/x me@A"},
		"a diff":                              {"+/w/a/x\n-/w/a/y", "/w/a", "+A/x\n-A/y"},
		"slashes escaped as in JSON":          {`{"f":"\/w\/a\/x","g":"\\/w\\/a"}`, "/w/a", `{"f":"A\/x","g":"A"}`},
		"lines escaped as in JSON":            {`"one\n/w/a/x\t/w/a\u0020/w/a"`, "/w/a", `"one\nA/x\tA\u0020A"`},
		"slashes by their number":             {`\u002fw\u002Fa\u002fx`, "/w/a", `A\u002fx`},
		"a URL with percents":                 {"file:%2F%2F%2Fw%2fa%2Fx file:///w/my%20ws/x", "/w/my ws", "file:%2F%2F%2Fw%2fa%2Fx file://A/x"},
		"percents for slashes":                {"?path=%2Fw%2fa%2Fx", "/w/a", "?path=A%2Fx"},
		"a space that is escaped for a shell": {`cat /w/my\ ws/x "/w/my ws/x"`, "/w/my ws", `cat A/x "A/x"`},
		"letters by their numbers":            {`"/w/\u00e4/x"`, "/w/ä", `"A/x"`},
		"slashes and dots that say little":    {"/w//a/x /w/./a /w/b/../a/x //w/a /w/./././a", "/w/a", "A/x A A/x A A"},
		"colors":                              {"\x1b[32m/w/a/x\x1b[0m", "/w/a", "\x1b[32mA/x\x1b[0m"},
		"what macOS puts before":              {"/private/w/a/x", "/w/a", "A/x"},
		"backslashes twice":                   {`"C:\\w\\a\\x"`, `C:\w\a`, `"A\\x"`},
		"massgen, relative":                   {"see .massgen/workspaces/agent_a_workspace/x and ./.massgen/workspaces/agent_a_workspace.", massgen, "see A/x and A."},
		"massgen, from elsewhere":             {"../../workspaces/agent_a_workspace/x ../agent_a_workspace/y agent_a_workspace", massgen, "A/x A/y A"},
		"massgen, by another root":            {"/mnt/foo/.massgen/workspaces/agent_a_workspace/x -I/mnt/agent_a_workspace", massgen, "A/x -IA"},
		"massgen, of another agent":           {"agent_aa_workspace/x xagent_a_workspace agent_a_workspace2", massgen, "agent_aa_workspace/x xagent_a_workspace agent_a_workspace2"},
		"massgen, a page":                     {"https://x.y/agent_a_workspace", massgen, "https://x.y/agent_a_workspace"},
		"a long relative path":                {"home/bob/work/x ./home/bob/work bob/work", "/srv/home/bob/work", "A/x A bob/work"},
		"a third agent's files":               {"/w/a/temp_workspaces/agent3/x.go, /w/a/sub/temp_workspaces/reviewer.", "/w/a", "hookfabric:temp_workspaces/agent3/x.go, hookfabric:temp_workspaces/reviewer."},
		"a third agent's in JSON":             {`"\/w\/a\/temp_workspaces\/agent3\/x"`, "/w/a", `"hookfabric:temp_workspaces/agent3\/x"`},
		"massgen, a third agent's":            {"/Users/foo/.massgen/temp_workspaces/agent_a/agent3/x.", massgen, "hookfabric:temp_workspaces/agent3/x."},
		"a third agent's, relative":           {"temp_workspaces/agent3/x ./temp_workspaces/agent4", "/w/a", "hookfabric:temp_workspaces/agent3/x hookfabric:temp_workspaces/agent4"},
		"no workspace, a third agent's":       {"/x/temp_workspaces/agent3/x", "", "hookfabric:temp_workspaces/agent3/x"},
		"no agent's folder":                   {"temp_workspaces is a folder; my_temp_workspaces/agent3 temp_workspaces/x https://a.b/temp_workspaces/agent3", "/w/a", "temp_workspaces is a folder; my_temp_workspaces/agent3 temp_workspaces/x https://a.b/temp_workspaces/agent3"},
		"what was called so already":          {"hookfabric:temp_workspaces/agent3/x", "/w/a", "hookfabric:temp_workspaces/agent3/x"},
	} {
		if got := schema.MoveWorkspace(c.text, c.from, "agent2"); got != strings.ReplaceAll(c.want, "A", schema.WorkspacePath("agent2")) {
			t.Errorf("%s:\n     %s\nwant %s", name, got, c.want)
		}
	}
}

// A long text takes linear time, even one that nearly mentions the folder everywhere.
func TestLongTextsAreMovedInLinearTime(t *testing.T) {
	for name, piece := range map[string]string{
		"words": "many words ", "parts": "/w/b/a", "slashes": "////", "dots": "/./a", "ups": "/b/../a", "back": "/../a", "others": "temp_workspaces", "thirds": "/temp_workspaces/x", "urls": "//x/a_workspace", "letters": "aaaa", "escapes": `\\a`,
	} {
		took := func(n int) time.Duration {
			text := strings.Repeat(piece, n/len(piece))
			start := time.Now()
			schema.MoveWorkspace(text, "/w/a", "agent2")
			schema.MoveWorkspace("http:"+text, "/w/a_workspace", "agent2")
			return time.Since(start)
		}
		// The best of several runs counts, because other processes may use the processor.
		short, long := time.Hour, time.Hour
		for range 20 {
			short, long = min(short, took(1<<14)), min(long, took(1<<17))
			if long < 20*short {
				break
			}
		}
		if long > 40*short {
			t.Errorf("%s: 16 KiB take %v, and 128 KiB %v", name, short, long)
		}
	}
}

// An author's path does not reach the receiver, with any text around it.
func TestNoPathOfAnAuthorReachesAReceiver(t *testing.T) {
	const folder = "/Users/zoë/.massgen/workspaces/alice_workspace"
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
		var text strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "mentions") {
			slash := pick("slash", "/", `\/`, `\\/`, "%2F", `\u002f`, "//", "/./", "/x/../")
			root := pick("root", "/Users/zoë/.massgen", "/private/Users/zoë/.massgen", `/Users/zo\u00eb/.massgen`, "/Users/zo%C3%AB/.massgen", ".massgen", "./.massgen", "../.massgen", "/mnt/other/.massgen")
			path := root + "/workspaces/alice_workspace"
			if rapid.Bool().Draw(t, "third") {
				path = pick("whose", path, root) + "/temp_workspaces/alice/agent3"
			}
			before := pick("before", "", " ", "\n", `"`, "'", "(", "[", "<", "`", "=", ":", ",", ";", "|", ">", "cc -I", " -L", " @", "\n+", "\n-", `\n`, `\t`, "file://", "\x1b[1m", "*", "{")
			if before == "file://" && !strings.HasPrefix(path, "/") {
				before = ""
			}
			after := pick("after", "", "/f.go", ".", ", ", " ", `"`, "\n", `\n`, ")", ":12", "/", "?", `\/f.go`, "%2Ff.go")
			space := pick("space", "\n", " and ", " ü ")
			text.WriteString(space + before + strings.ReplaceAll(path, "/", slash) + after)
		}
		got := schema.MoveWorkspace(text.String(), folder, "agent2")
		for _, word := range []string{"alice", "Users", "massgen", "mnt"} {
			if strings.Contains(got, word) {
				t.Fatalf("%q became\n%q, with %s in it", text.String(), got, word)
			}
		}
		if again := schema.MoveWorkspace(got, folder, "agent2"); again != got {
			t.Fatalf("%q became\n%q the second time", got, again)
		}
	})
}

// Text without the folder stays unchanged, for all bytes.
func FuzzMoveWorkspace(f *testing.F) {
	f.Add("see /w/b/x.go and \\/w\\/b", "/w/a")
	f.Add("temp_workspaces/agent1/../x", ".massgen/x_workspace")
	f.Fuzz(func(t *testing.T, text, folder string) {
		got := schema.MoveWorkspace(text, folder, "agent2")
		last := folder[strings.LastIndexAny(folder, `/\`)+1:]
		if last != "" && !strings.Contains(text, "w") && strings.TrimRight(folder, `/\`) == "/zz" && !strings.Contains(text, "zz") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if strings.Count(got, "hookfabric:") > strings.Count(text, "hookfabric:") && !strings.Contains(text, "temp_workspaces") && !strings.ContainsAny(folder, `/\`) {
			t.Errorf("%q became %q although the folder %q is a word", text, got, folder)
		}
	})
}
