package dialect

import (
	"maps"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

const noShell = `{"stdout":"","stderr":"","interrupted":false,"isImage":false}`

// shaped returns an output in the shape of Claude Code's own tool, because Claude Code drops another shape and
// shows the original. If known is false, shaped replaced all texts, and Claude Code may drop the result.
func shaped(e *schema.Event, output jsontext.Value) (replaced jsontext.Value, known bool) {
	if e.ToolKind == schema.KindMCP || strings.HasPrefix(e.ToolName, "mcp__") {
		return blocks(output), true
	}
	original, shell := e.ToolOutput, e.ToolKind == schema.KindShell || e.ToolName == "Bash" || e.ToolName == "PowerShell"
	if shell {
		original = jsontext.Value(noShell) // other members of the original must not stay
	}
	if v, ok := over(original, output); ok {
		return v, true
	}
	text := quoted(Text(output))
	switch {
	case shell:
		return with(original, values{"stdout": text}), true
	case original.Kind() != '{':
		if original.Kind() == '"' {
			return quoted(Text(output)), true
		}
		return output, true
	}
	switch e.ToolName {
	case "Read":
		return readText(e, Text(output)), true
	case "Write", "Edit":
		return with(original, values{"filePath": text}), true // the model sees no other text of it
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

// readText returns the output of Read for a text file, also if the tool had read a picture.
func readText(e *schema.Event, text string) jsontext.Value {
	path := members(members(e.ToolOutput)["file"])["filePath"]
	if path.Kind() != '"' {
		path = quoted(word(members(e.ToolInput)["file_path"]))
	}
	lines := jsontext.Value(strconv.Itoa(strings.Count(text, "\n") + 1))
	return object(values{"type": quoted("text"), "file": object(values{
		"filePath": path, "content": quoted(text), "numLines": lines, "startLine": jsontext.Value("1"), "totalLines": lines})})
}

// over merges an output into the tool's own. ok is false unless they share members with values of one kind.
func over(original, output jsontext.Value) (jsontext.Value, bool) {
	all, put := members(original), members(output)
	some := false
	truth := func(v jsontext.Value) bool { return v.Kind() == 't' || v.Kind() == 'f' }
	alike := func(a, b jsontext.Value) bool { return a.Kind() == b.Kind() || a.Kind() == 'n' || truth(a) && truth(b) }
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

// with returns an object with some members replaced.
func with(original jsontext.Value, put values) jsontext.Value {
	all := members(original)
	if all == nil {
		return object(put)
	}
	maps.Copy(all, put)
	return object(all)
}

// withoutTexts replaces the longest string of a value by text, and the others by a placeholder. Single words
// stay, because they may distinguish forms of the output.
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

// eachText returns a value with f applied to its strings, but not to the names of its members.
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

// isWord reports whether s looks like a keyword, of which programs have a fixed set.
func isWord(s string) bool {
	return len(s) <= 24 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-") == ""
}

// blocks returns an output as an MCP server's list of content blocks.
func blocks(output jsontext.Value) jsontext.Value {
	if content := members(output)["content"]; content.Kind() == '[' {
		return content
	}
	if output.Kind() == '[' {
		return output
	}
	return list(object(values{"type": quoted("text"), "text": quoted(Text(output))}))
}
