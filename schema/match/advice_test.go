package match_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema/match"
)

func TestAdviceProposesAPattern(t *testing.T) {
	const names = `write the names with | between them, such as "Write|Edit"`
	for _, c := range []struct{ name, pattern, says string }{
		{"a comma", "Write,Edit", `separates alternatives; write "Write|Edit"`},
		{"a comma and blanks", "Write, Edit", `write "Write|Edit"`},
		{"a comma beside a bar", "Write,Edit|mcp__*", `write "Write|Edit|mcp__*"`},
		{"only a comma", ",", names},
		{"a negation", "!Bash", `matchers have no negation; remove the matcher and write when: 'tool_name != "Bash"'`},
		{"a negation with a blank", " ! Bash", `write when: 'tool_name != "Bash"'`},
		{"a negated glob", "!mcp__*", "write a condition on tool_name with when:"},
		{"two negations", "!Bash|!Edit", "write a condition on tool_name with when:"},
		{"a negation later", "Write | !Edit", "write a condition on tool_name with when:"},
		{"braces", "{Write,Edit}", `braces have no meaning; write "Write|Edit"`},
		{"braces with a bar", "{Write|Edit}", `write "Write|Edit"`},
		{"braces around a part", "mcp__{a, b}__*", `write "mcp__a__*|mcp__b__*"`},
		{"a brace that is not closed", "{a,b", `write "a|b"`},
		{"a brace that is not opened", "a,b}", `write "a|b"`},
		{"one name in braces", "{Write}", `write "Write"`},
		{"braces beside an alternative", "Read|{Write,Edit}", names},
		{"braces in braces", "{a,{b,c}}", names},
		{"two pairs of braces", "{a,b}{c,d}", names},
		{"empty braces", "{}", names},
		{"too much to propose", strings.Repeat("a,", 200), names},
		{"too much in braces to propose", "{" + strings.Repeat("a,", 200) + "}", names},
		{"a comma beside a set", "[ab]x,y", `write "[ab]x|y"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := match.Compile(c.pattern); err != nil {
				t.Fatal(err)
			}
			if got := match.Advice(c.pattern); !strings.HasSuffix(got, c.says) {
				t.Errorf("got  %s\nwant %s", got, c.says)
			}
		})
	}
}

func TestNoAdviceWhereNamesCanMatch(t *testing.T) {
	for _, pattern := range []string{
		"", "*", "Bash", "Write|Edit", "Write | Edit", "mcp__*", "mcp__my-server__read.file", "mcp_server_tool", "@git/status", "fs_*", "server:tool",
		"Read File", "step?", "tool[0-9]", "tool[!0-9]", "[!W]*", "a[,]b", "a[{]b[}]", "[]{,]x", "[!]{,]x", "a!b", "C[+][+]", "工具",
	} {
		if _, err := match.Compile(pattern); err != nil {
			t.Errorf("%q: %v", pattern, err)
		}
		if got := match.Advice(pattern); got != "" {
			t.Errorf("%q: %s", pattern, got)
		}
	}
}

// For any valid pattern, advice is one sentence, and its proposal needs no further
// advice.
func TestAdviceNeedsNoAdvice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab,{}!|*\[\] ]{0,12}`).Draw(t, "pattern")
		if _, err := match.Compile(pattern); err != nil {
			return
		}
		_, proposed, found := strings.Cut(match.Advice(pattern), `; write "`)
		if !found {
			return
		}
		proposed = strings.TrimSuffix(proposed, `"`)
		if _, err := match.Compile(proposed); err != nil {
			t.Fatalf("%q: it proposes %q: %v", pattern, proposed, err)
		}
		if again := match.Advice(proposed); again != "" {
			t.Fatalf("%q: it proposes %q, of which it says %s", pattern, proposed, again)
		}
	})
}
