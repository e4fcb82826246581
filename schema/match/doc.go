// Package match is the fabric's one matcher: the only place that decides
// which tools a hook is about, and which agents a section of the
// configuration is about.
//
// A pattern is a case-sensitive glob: * stands for any characters, none and
// slashes included, ? for exactly one, [seq] for one of a set, [!seq] for one
// outside of it. Several globs are separated by | and trimmed. No pattern at
// all matches everything. A character that has a meaning is written as a set
// of one, such as [*], to mean itself.
//
// What looks like a regular expression is refused, because a policy whose
// matcher silently matches nothing is worse than one that does not start.
// Braces have no meaning in these globs and match themselves.
//
// compile.go reads patterns, class.go reads their sets, regex.go recognises
// regular expressions and finds what to write instead.
package match
