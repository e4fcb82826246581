// Package match implements the patterns that select tools and agents. It is the only matcher of
// the fabric.
//
// A pattern is a case-sensitive glob. * matches any characters, including slashes, or no
// character. ? matches exactly one character, [seq] one of a set, and [!seq] one outside it. |
// separates alternatives, and spaces around them do not count. The empty pattern matches every
// name. To match a special character itself, put it in a set: [*]. Braces, commas and a leading !
// have no special meaning and match themselves. [Advice] says what to write instead of a pattern
// that no name can match.
//
// Compile rejects patterns that look like regular expressions. A policy whose matcher silently
// matches nothing would be worse than one that does not start.
//
// # Concurrency
//
// Several goroutines may use a [Matcher], and an [Index] after the last Add.
//
// # Usage
//
//	m, err := match.Compile("Write|Edit|mcp__*")
//	if err != nil {
//		return err
//	}
//	m.Match("mcp__github__create_issue") // true
//
// The file compile.go reads patterns, class.go reads sets, and regex.go detects regular
// expressions.
package match
