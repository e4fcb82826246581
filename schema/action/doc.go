// Package action parses a tool call into facts: what it runs, which files and hosts it uses, and
// with which access. The facts are the same for all runtimes.
//
//	a := action.Parse(event)
//	for _, c := range a.Commands {
//		fmt.Println(c.Name, c.Args, c.Wrappers)
//	}
//
// A shell command is parsed, not searched. Quoted text and here-documents are data unless a shell or
// an interpreter reads them. Wrappers such as sudo, env and bash -c are resolved to the command that
// they run. Variables with constant values are expanded, for every value that they may have.
//
// The facts never claim less than the call does: text that cannot be parsed is in
// [Action.Unparsed], and a command that is known only at run time is [Command.Dynamic]. They may
// claim more, such as both branches of a condition.
//
// Parse reads no files and starts no programs. Its work is bounded: see the limits in action.go.
//
// Start with action.go. shell.go walks the statements of a script, with the variables of scope.go and
// the input of input.go. words.go expands words: printed.go has constant output, and written.go the
// text of words that are known only at run time. run.go resolves commands: prefixes such as sudo by
// the table in wrappers.go, builtins and shells in special.go, programs such as xargs and git in
// programs.go, and interpreters in code.go. paths.go and hosts.go derive paths and hosts. tools.go
// handles the input of tools.
package action
