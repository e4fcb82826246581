package cond_test

import (
	"strings"
	"testing"
)

// mistakes are mistakes of users, with the messages that they read.
var mistakes = []struct{ is, expr, want string }{
	{"a misspelt field", `tool_inptu.command == "x"`, "1:1: there is no field tool_inptu; did you mean tool_input?"},
	{"a field in other letters", `TOOL_NAME == "x"`, "1:1: there is no field TOOL_NAME; did you mean tool_name?"},
	{"two misspelt fields", `tool_nmae == "x" || iteraton > 2`,
		"1:1: there is no field tool_nmae; did you mean tool_name?\n1:21: there is no field iteraton; did you mean iteration?"},
	{"a field that other systems have", `command == "x"`, "1:1: there is no field command; write tool_input.command"},
	{"a field that conditions do not see", `native == ""`, "1:1: there is no field native; conditions cannot use it; the fabric sends it only to hooks that need it"},
	{"the conversation", `history.size() > 3`, "1:1: there is no field history; conditions cannot use it; the fabric sends it only to hooks that need it"},
	{"where the conversation lies", `history_ref == ""`, "1:1: there is no field history_ref; conditions cannot use it; it only says where the history is stored"},
	{"the status as a whole", `status.iteration > 3`, "1:1: there is no field status; write one of its fields without the prefix, such as iteration"},
	{"a field of the event's name", `event.tool_name == "Bash"`, "1:6: a string has no fields; only maps such as tool_input and labels have fields"},
	{"a misspelt word of the status", `tool_cal.name == "Bash"`, "1:1: there is no field tool_cal; did you mean tool_call?"},
	{"a fault on the second line, behind a character of two bytes", "tool_name == \"ä\"\n  && \"ä\" == True", "2:13: there is no field True; write true"},
	{"a field of what is no map", `tool_name.foo == "x"`, "1:10: a string has no fields; only maps such as tool_input and labels have fields"},
	{"a field of a label", `labels.foo.bar == "x"`, "1:11: a string has no fields; only maps such as tool_input and labels have fields"},
	{"a number compared with a text", `iteration == "3"`, "1:11: == does not take an int and a string; write both sides as values of one type"},
	{"a label compared with a number", `labels.team == 3`, "1:13: == does not take a string and an int; write both sides as values of one type"},
	{"a text and a number", `"a" + 1 == "b"`, "1:5: + does not take a string and an int; write both sides as values of one type"},
	{"a text in a text", `"a" in tool_name`, "1:5: in does not take a string and a string; look into a list or a map, or write text.contains(part)"},
	{"a text that is not", `!tool_name`, "1:1: ! does not take a string; compare it with something first"},
	{"a negative text", `-tool_name == "x"`, "1:1: - does not take a string; compare it with something first"},
	{"a choice of two types", `tool_name == "x" ? 1 : true`, "1:18: the branches of ? have different types: an int and a bool; write condition ? this : that, where both are of one type"},
	{"an index into a number", `iteration["x"] == 1`, "1:10: […] cannot be applied to an int and a string; write the name of a field in quotes, or an item's number"},
	{"an argument of a wrong type", `tool_name.startsWith(1)`, "1:21: startsWith of a string does not take (an int)"},
	{"no condition", `iteration`, "1:1: the condition evaluates to an int, not to true or false; compare it with something, as in iteration > 3"},
	{"an optional value", `tool_input.?command`, `1:1: the condition evaluates to an optional_type(dyn), not to true or false; end it with orValue and compare it, as in tool_input.?command.orValue("") == "ls"`},
	{"has of a whole field", `has(tool_input)`, "1:5: has takes a field of a map; write has(tool_input.command)"},
	{"a loop without a name", `labels.exists(1, true)`, `1:15: the first argument of a loop must be a name for its items; write it as in labels.exists(name, name == "team")`},
	{"a loop without a condition", `labels.exists(x)`, "1:14: exists has the wrong arguments; write list.exists(x, x > 1)"},
	{"a loop over a text", `tool_name.exists(x, true)`, "1:1: a string has no items; loop over a list or a map"},
	{"a loop that stands too deep", `labels.all(a, labels.all(b, labels.all(c, c == a)))`, "1:39: loops are nested more than 2 deep; move the decision into a hook"},
	{"a list of mixed types", `tool_name in ["a", 1]`, "1:20: a list of string contains an int; write items of one type"},
	{"a misspelt function", `tool_name.startsWit("x")`, "1:20: there is no function startsWit; did you mean startsWith?"},
	{"a function of another language", `len(tool_name) == 1`, "1:4: there is no function len; write size(text)"},
	{"an unknown function", `tool_name.frobnicate()`, "1:21: there is no function frobnicate; write a function of CEL, such as contains, startsWith, matches or size"},
	{"no time", `timestamp > timestamp("tomorrow")`, `1:23: this is not a valid time; write timestamp("2026-01-02T15:04:05Z")`},
	{"no duration", `duration("long") > duration("1s")`, `1:10: this is not a valid duration; write duration("90s")`},
	{"a broken pattern", `tool_name.matches("(")`, "1:19: the pattern of matches is not valid RE2: error parsing regexp: missing closing ): `(`; write it as in tool_name.matches(\"^mcp__\")"},
	{"a pattern that is too large", `tool_name.matches("a{500}")`, `1:19: the pattern of matches is too large an RE2 expression; write it as in tool_name.matches("^mcp__")`},
	{"a pattern from the event", `matches(tool_name, cwd)`, `1:20: the pattern of matches must be a string literal; write it as in tool_name.matches("^mcp__")`},
	{"a single =", `tool_name = "x"`, "1:11: = is not a comparison; write =="},
	{"a single &", `iteration == 1 & true`, "1:16: a single & is not an operator; write &&"},
	{"=~", `tool_name =~ "x"`, `1:11: there is no =~; write text.matches("pattern")`},
	{"and", `iteration == 1 and true`, `1:16: unexpected "and" after a complete condition; write &&`},
	{"contains as an operator", `tool_name contains "x"`, `1:11: unexpected "contains" after a complete condition; write it as a call, such as tool_name.contains("x")`},
	{"a reserved word", `if iteration == 1`, `1:1: if is a reserved word; write a choice as condition ? this : that, and a field as tool_input["if"]`},
	{"a quote that is not closed", `tool_name == "x`, `1:14: this quote is never closed; close it, and write \\ for a backslash in it`},
	{"a bracket that is not closed", `has(tool_input.x`, "1:17: the condition ends too early; a value or a closing bracket is missing"},
	{"a bracket too much", `has(tool_input.x))`, `1:18: unexpected ")" after a complete condition; join conditions with && or ||`},
	{"nothing", ``, "1:1: the condition ends too early; a value or a closing bracket is missing"},
	{"a strange character", `$x`, `1:1: "$x" is not valid here; put strings in quotes`},
	{"too many brackets", strings.Repeat("(", 70) + "true" + strings.Repeat(")", 70), "1:1: the condition is too long, or nests too deep; write less, or move the decision into a hook"},
	{"too long a text", strings.Repeat("true && ", 1000) + "true", "1:1: the condition has 8004 bytes; the limit is 4096; move the decision into a hook"},
	{"no UTF-8", "tool_name == \"\xff\"", "1:1: the condition is not valid UTF-8; save the file as UTF-8"},
	{"what always costs too much", `[` + strings.Repeat("1,", 180) + `1].map(x, [` + strings.Repeat("1,", 180) + `1].map(y, x == y)).size() == 0`,
		"1:1: the condition always exceeds the cost limit; loop over less, or move the decision into a hook"},
}

func TestFaultsHaveAPlaceAndAHint(t *testing.T) {
	c := compiler(t)
	for _, m := range mistakes {
		t.Run(m.is, func(t *testing.T) {
			if _, err := c.Compile(m.expr); err == nil || err.Error() != m.want {
				t.Errorf("got  %v\nwant %s", err, m.want)
			}
		})
	}
}
