package action

import (
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// output returns the function that expands a command substitution whose output is constant.
func (w *walker) output(s *scope) func(io.Writer, *syntax.CmdSubst) error {
	return func(to io.Writer, c *syntax.CmdSubst) error {
		if len(c.Stmts) != 1 {
			return errOpen
		}
		out, ok := w.printed(s, c.Stmts[0])
		if !ok {
			return errOpen
		}
		_, err := io.WriteString(to, out)
		return err
	}
}

// printed returns the output of a statement that only prints constant text, perhaps decoded from base64.
func (w *walker) printed(s *scope, stmt *syntax.Stmt) (string, bool) {
	if pipe, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe && len(stmt.Redirs) == 0 {
		return w.decoded(s, pipe)
	}
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || stmt.Negated || stmt.Background || !w.step() {
		return "", false
	}
	worlds := s.worlds(names(call.Args))
	if len(worlds) > 1 {
		return "", false
	}
	var list []field
	for _, word := range call.Args {
		list = append(list, w.expand(s, worlds[0], word)...)
	}
	if isOpen(list) || len(list) == 0 {
		return "", false
	}
	args := texts(list[1:])
	switch list[0].text {
	case "cat":
		if len(args) > 0 || len(stmt.Redirs) != 1 {
			return "", false
		}
		in := w.input(s, stmt.Redirs)
		return in.text, in.given && !in.open
	case "echo":
		return echoed(args), len(stmt.Redirs) == 0
	case "printf":
		if len(args) == 0 || len(stmt.Redirs) > 0 || !simpleFormat(args[0]) {
			return "", false
		}
		out, _, err := expand.Format(&expand.Config{Env: worlds[0]}, args[0], args[1:])
		return out, err == nil
	}
	return "", false
}

// decoded returns the output of a pipeline that decodes constant text.
func (w *walker) decoded(s *scope, pipe *syntax.BinaryCmd) (string, bool) {
	call, ok := pipe.Y.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 2 || call.Args[0].Lit() != "base64" || !slices.Contains([]string{"-d", "-D", "--decode"}, call.Args[1].Lit()) || !w.enter() {
		return "", false
	}
	defer w.leave()
	text, ok := w.printed(s, pipe.X)
	if !ok {
		return "", false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	return string(plain), err == nil && utf8.Valid(plain)
}

// simpleFormat reports whether a format of printf has no widths, which could make the output long.
func simpleFormat(format string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] == '%' {
			if i++; i == len(format) || !strings.ContainsRune("%sbqcdiouxX", rune(format[i])) {
				return false
			}
		}
	}
	return true
}

// echoed returns the output of echo.
func echoed(args []string) string {
	end, escapes := "\n", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		if strings.Contains(args[0], "n") {
			end = ""
		}
		escapes = escapes || strings.Contains(args[0], "e")
		args = args[1:]
	}
	out := strings.Join(args, " ")
	if escapes {
		if plain, _, err := expand.Format(&expand.Config{}, strings.ReplaceAll(out, "%", "%%"), nil); err == nil {
			out = plain
		}
	}
	return out + end
}
