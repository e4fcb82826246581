package cond_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"
)

// Every expensive condition is rejected when it is compiled, or is an error when it is
// evaluated.
func TestExpensiveConditionsAreErrors(t *testing.T) {
	for is, c := range expensive() {
		t.Run(is, func(t *testing.T) {
			cnd, err := compiler(t).Compile(c.expr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cnd.Holds(view(c.body)); err == nil || !strings.Contains(err.Error(), "too much work") && !strings.Contains(err.Error(), "cost limit") && !strings.Contains(err.Error(), "too many") {
				t.Errorf("%v", err)
			}
		})
	}
}

// Texts in tool input are long, and an error would count as true, so a condition that
// searches for a rare text must evaluate to false.
func TestLongTextsCanBeSearched(t *testing.T) {
	for expr, size := range map[string]int{
		`tool_input.a.contains("rm ")`: 7 << 20,
		`tool_input.a.matches("AKIA[0-9A-Z]{16}") || tool_input.a.matches("ghp_[0-9A-Za-z]{36}")`:           1 << 20,
		`tool_input.a.matches("AKIA[0-9A-Z]{16}|gh[pousr]_[0-9A-Za-z]{36}|xox[abpr]-[0-9A-Za-z-]{10}")`:     12 << 10,
		`tool_input.a.matches("(?i)(api[_-]?key|secret|token)\\s*[:=]\\s*['\"][A-Za-z0-9/+=_-]{16,}['\"]")`: 20 << 10,
		`tool_input.a.lowerAscii().contains("secret")`:                                                      100 << 10,
	} {
		holds(t, expr, fmt.Sprintf(`{"tool_input": {"a": %q}}`, strings.Repeat("all through the token, ", size/23)), false)
	}
}

// costly is a condition and an event with the maximum of permitted work, and with more.
type costly struct{ expr, body string }

func expensive() map[string]costly {
	numbers := strings.TrimSuffix(strings.Repeat("1,", 10_000), ",")
	long := strings.Repeat("a", 4<<20)
	body := fmt.Sprintf(`{"tool_input": {"list": [%s], "long": %q, "some": %q, "part": %q}, "flags": {"long": %[2]q}}`, numbers, long, long[:100_000], long[:2000])
	return map[string]costly{
		"a loop":                        {`tool_input.list.all(x, x == 1)`, body},
		"a loop in a loop":              {`tool_input.list.all(x, tool_input.list.all(y, x == y))`, body},
		"a new list for each item":      {`tool_input.list.map(x, [x, x, x]).size() == 0`, body},
		"a text searched for each":      {`tool_input.list.all(x, tool_input.long.contains("b") == false)`, body},
		"a text in lower case for each": {`tool_input.list.all(x, tool_input.some.lowerAscii() != "b")`, body},
		"a text compared for each":      {`tool_input.list.all(x, tool_input.some != tool_input.part)`, body},
		"texts joined for each":         {`tool_input.list.all(x, (tool_input.part + tool_input.part) != "")`, body},
		"every item with every other":   {`sets.contains(tool_input.list, tool_input.list)`, body},
		"a search for a long part":      {`tool_input.long.indexOf(tool_input.part) == -1`, body},
		"a text in pieces":              {`tool_input.long.split("").size() == 1`, body},
		"a text that grows":             {`tool_input.some.replace("a", tool_input.part) == ""`, body},
		"a pattern on a long text":      {`tool_input.long.matches("(a+a+)+y")`, body},
		"a pattern that branches":       {`tool_input.some.matches("(a|a|a|a|a)*(a|aa|aaa|aaaa){1,9}b")`, body},
		"a pattern for each item":       {`tool_input.list.all(x, !tool_input.part.matches("(a|a|a|a|a)*b"))`, body},
		"texts joined, for each":        {`tool_input.list.all(x, [tool_input.long, tool_input.long].join(",") != "")`, body},
		"a time zone for each item":     {`tool_input.list.all(x, timestamp.getHours("Asia/Tokyo") > 0)`, body},
		"a text turned into bytes":      {`tool_input.list.all(x, bytes(tool_input.some).size() > 0)`, body},
		"a deep list compared":          {`tool_input.list.all(x, [tool_input.list] == [tool_input.list])`, body},
		"a deep list looked through":    {`tool_input.list.all(x, [tool_input.list] in [[tool_input.list]])`, body},
		"a call's list in a loop":       {`tool_call.input.list.all(x, tool_call.input.list.all(y, x == y))`, body},
		"a call's text for each":        {`tool_call.input.list.all(x, tool_call.input.some.lowerAscii() != "b")`, body},
		"calls compared for each":       {`tool_call.input.list.all(x, [tool_call] == [tool_call])`, body},
		"a flag's pattern":              {`flags.long.matches("(a+a+)+y")`, body},
		"a loop over a large list":      {`tool_input.list.filter(x, x > 2).size() + tool_input.list.filter(x, x > 3).size() == 1`, body},
	}
}

func BenchmarkWorstCase(b *testing.B) {
	for is, c := range expensive() {
		b.Run(strings.ReplaceAll(is, " ", "-"), func(b *testing.B) {
			cnd, v := compile(b, c.expr), view(c.body)
			for b.Loop() {
				if _, err := cnd.Holds(v); err == nil {
					b.Fatal("no error")
				}
			}
		})
	}
}

// BenchmarkLargestCall measures the maximum work of one function call: on the longest
// permitted text or list.
func BenchmarkLargestCall(b *testing.B) {
	for is, expr := range map[string]string{
		"contains": `tool_input.a.contains("b")`, "size": `tool_input.a.size() == 0`, "lowerAscii": `tool_input.a.lowerAscii() == ""`,
		"split": `tool_input.a.split("").size() == 0`, "trim": `tool_input.a.trim() == ""`, "charAt": `tool_input.a.charAt(3) == ""`,
		"replace": `tool_input.a.replace("a", "bcd") == ""`, "indexOf": `tool_input.a.indexOf("aaaaaaab") == 0`,
		"matches": `tool_input.a.matches("(a+a+)+y")`, "matches-branching": `tool_input.a.matches("(a|a|a|a|a)*(a|aa|aaa|aaaa){1,9}b")`,
		"matches-looping": `tool_input.a.matches("(a*)*(a*)*(a*)*b")`, "equal": `tool_input.a == tool_input.b`,
		"sets": `sets.contains(tool_input.list, [1,2,3,4,5,6,7,8,9])`, "in": `2 in tool_input.list`, "lists-equal": `tool_input.list == tool_input.other`,
	} {
		b.Run(is, func(b *testing.B) {
			cnd := compile(b, expr)
			n := sort.Search(7<<20, func(n int) bool { _, err := cnd.Holds(view(sized(n))); return err != nil }) - 1
			v := view(sized(n))
			for b.Loop() {
				if _, err := cnd.Holds(v); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n), "bytes")
		})
	}
}

// sized returns an event with texts and lists of n bytes.
func sized(n int) string {
	list := strings.TrimSuffix(strings.Repeat("1,", min(n, 8000)), ",")
	return fmt.Sprintf(`{"tool_input": {"a": %q, "b": %q, "list": [%s], "other": [%[3]s]}}`,
		strings.Repeat("a", n), strings.Repeat("a", n), list)
}

func BenchmarkCompile(b *testing.B) {
	c := compiler(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Compile(`tool_input.?command.orValue("").contains("rm ")`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewCompiler(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compiler(b)
	}
}

// BenchmarkHolds measures a typical condition on an event of 1 KiB: on a new one,
// including decoding, and on a decoded one.
func BenchmarkHolds(b *testing.B) {
	body := fmt.Sprintf(`{"runtime":"claude","tool_name":"Bash","tool_input":{"command":"rm -rf build","description":%q,"timeout":120000},"cwd":"/home/a","labels":{"team":"red"}}`,
		strings.Repeat("x", 860))
	for name, expr := range map[string]string{
		"routing": `tool_name == "Bash" && agent_id.startsWith("a")`,
		"field":   `tool_input.command.contains("rm ")`,
		"has":     `has(tool_input.command) && tool_input.command.contains("rm ")`,
		"maybe":   `tool_input.?command.orValue("").matches("^rm\\s")`,
		"labels":  `labels.team == "red" && cwd.startsWith("/home")`,
		"status":  `event == "PreToolUse" && tool_call.name == "Bash" && tool_call.input.command.contains("rm ")`,
	} {
		c, read := compile(b, expr), view(body)
		b.Run(name+"/new", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask(b, c, view(body))
			}
		})
		b.Run(name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask(b, c, read)
			}
		})
	}
}
