package dialect

import (
	"maps"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// noShell is the output of a command that said nothing.
const noShell = `{"stdout":"","stderr":"","interrupted":false,"isImage":false}`

// shaped is an output in the shape that Claude Code's tool itself has: one of
// another shape is dropped, and the model sees what was to be replaced. A text is
// put where the model sees the tool's. It reports whether that place is known: of
// other tools' outputs all texts are replaced, and Claude Code may find that the
// rest is no output of the tool.
func shaped(e *schema.Event, output jsontext.Value) (replaced jsontext.Value, known bool) {
	if e.ToolKind == schema.KindMCP || strings.HasPrefix(e.ToolName, "mcp__") {
		return blocks(output), true
	}
	original, shell := e.ToolOutput, e.ToolKind == schema.KindShell || e.ToolName == "Bash" || e.ToolName == "PowerShell"
	if shell {
		original = jsontext.Value(noShell) // what the command said in other members must not stay
	}
	if v, ok := over(original, output); ok {
		return v, true
	}
	text := quoted(Text(output))
	switch {
	case shell:
		return with(original, values{"stdout": text}), true
	case original.Kind() != '{':
		return likewise(original, output), true
	}
	switch e.ToolName {
	case "Read":
		return readText(e, Text(output)), true
	case "Write", "Edit":
		return with(original, values{"filePath": text}), true // the model is told no other text of it
	case "NotebookEdit":
		return with(original, values{"new_source": text}), true
	case "Agent", "Task":
		return with(original, values{"content": blocks(output)}), true
	case "Glob":
		return with(original, values{"filenames": list(text)}), true
	case "Grep":
		return with(original, values{"mode": quoted("content"), "content": text, "filenames": list(), "numFiles": jsontext.Value("0")}), true
	case "WebFetch":
		return with(original, values{"result": text}), true
	case "WebSearch":
		return with(original, values{"results": list(text)}), true
	}
	return withoutTexts(original, Text(output)), false
}

// readText is a file that has this text, whatever the tool had read: a picture
// is none any more.
func readText(e *schema.Event, text string) jsontext.Value {
	path := members(members(e.ToolOutput)["file"])["filePath"]
	if path.Kind() != '"' {
		path = quoted(word(members(e.ToolInput)["file_path"]))
	}
	lines := jsontext.Value(strconv.Itoa(strings.Count(text, "\n") + 1))
	return object(values{"type": quoted("text"), "file": object(values{
		"filePath": path, "content": quoted(text), "numLines": lines, "startLine": jsontext.Value("1"), "totalLines": lines})})
}

// likewise is an output as a text if the tool's own is one.
func likewise(original, output jsontext.Value) jsontext.Value {
	if original.Kind() == '"' {
		return quoted(Text(output))
	}
	return output
}

// over puts the members of an output over the tool's own, and reports whether
// they are such: it has some of them, and those are of the same kind.
func over(original, output jsontext.Value) (jsontext.Value, bool) {
	all, put := members(original), members(output)
	some := false
	for name, v := range put {
		was, there := all[name]
		if inner, ok := over(was, v); ok {
			v = inner
		} else if there && (!alike(was, v) || len(members(was)) > 0) {
			return nil, false
		}
		some = some || there
		if all != nil {
			all[name] = v
		}
	}
	return object(all), some
}

// alike reports whether two values are of one kind. What was null may be anything.
func alike(a, b jsontext.Value) bool {
	truth := func(v jsontext.Value) bool { return v.Kind() == 't' || v.Kind() == 'f' }
	return a.Kind() == b.Kind() || a.Kind() == 'n' || truth(a) && truth(b)
}

// with is an object with a few members put over its own.
func with(original jsontext.Value, put values) jsontext.Value {
	all := members(original)
	if all == nil {
		return object(put)
	}
	maps.Copy(all, put)
	return object(all)
}

// withoutTexts is a value in which text stands in the place of the longest one,
// and nothing in that of the others. Single words stay: they may be what tells
// one form of the output from another.
func withoutTexts(v jsontext.Value, text string) jsontext.Value {
	longest := ""
	eachText(v, func(s string) string {
		if len(s) > len(longest) || len(s) == len(longest) && s < longest {
			longest = s
		}
		return s
	})
	return eachText(v, func(s string) string {
		switch {
		case s == longest:
			return text
		case isWord(s):
			return s
		}
		return "(replaced by a hook)"
	})
}

// eachText is a value whose texts are what f makes of them; names of members are none.
func eachText(v jsontext.Value, f func(string) string) jsontext.Value {
	switch v.Kind() {
	case '"':
		return quoted(f(Text(v)))
	case '{':
		all := members(v)
		for name, m := range all {
			all[name] = eachText(m, f)
		}
		return object(all)
	case '[':
		var all []jsontext.Value
		if schema.Unmarshal(v, &all) != nil {
			return v
		}
		for i := range all {
			all[i] = eachText(all[i], f)
		}
		return list(all...)
	}
	return v
}

// isWord reports whether s is a word such as programs choose from a few.
func isWord(s string) bool {
	return len(s) <= 24 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == ""
}

// blocks is an output as an MCP server's: a list of content blocks.
func blocks(output jsontext.Value) jsontext.Value {
	if content := members(output)["content"]; content.Kind() == '[' {
		return content
	}
	if output.Kind() == '[' {
		return output
	}
	return list(object(values{"type": quoted("text"), "text": quoted(Text(output))}))
}

// values are the members of an object.
type values = map[string]jsontext.Value

// members are those of an object; nil: it is none.
func members(v jsontext.Value) values {
	var all values
	if v.Kind() != '{' || schema.Unmarshal(v, &all) != nil {
		return nil
	}
	return all
}

// object is one of these members, which are JSON already.
func object(members values) jsontext.Value {
	data, err := schema.Marshal(members)
	if err != nil {
		return nil
	}
	return data
}

// list is one of these items, which are JSON already.
func list(items ...jsontext.Value) jsontext.Value {
	data, err := schema.Marshal(append([]jsontext.Value{}, items...))
	if err != nil {
		return nil
	}
	return data
}

// quoted is a text as JSON.
func quoted(s string) jsontext.Value {
	data, err := schema.Marshal(s)
	if err != nil {
		return jsontext.Value(`""`)
	}
	return data
}
