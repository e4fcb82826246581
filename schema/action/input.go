package action

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An input is what a command reads.
type input struct {
	given bool   // it is not the input of the script
	open  bool   // it is known only at run time
	text  string // if it is known
}

// input returns the input from redirects, or that of the scope.
func (w *walker) input(s *scope, redirects []*syntax.Redirect) input {
	in := s.in
	for _, r := range redirects {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil {
				f := w.document(s, r.Hdoc)
				in = input{given: true, open: f.open, text: f.text}
			} else {
				in = input{given: true}
			}
		case syntax.WordHdoc:
			f := w.document(s, r.Word)
			in = input{given: true, open: f.open, text: f.text + "\n"}
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn:
			in = input{given: true, open: true}
		}
	}
	return in
}

// redirects returns the files of redirects.
func (w *walker) redirects(s *scope, all []*syntax.Redirect) []Redirect {
	var list []Redirect
	for _, r := range all {
		access := WriteAccess
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			continue
		case syntax.RdrIn, syntax.DplIn:
			access = ReadAccess
		}
		for _, fields := range w.alternatives(s, []*syntax.Word{r.Word}) {
			for _, f := range fields {
				if isDescriptor(r.Op, f.text) {
					continue
				}
				list = append(list, Redirect{Op: r.Op.String(), Target: f.text, Access: access})
			}
		}
	}
	return list
}

// isDescriptor reports whether the target of a redirect is a file descriptor, as in 2>&1.
func isDescriptor(op syntax.RedirOperator, target string) bool {
	if op != syntax.DplIn && op != syntax.DplOut {
		return false
	}
	return target == "-" || strings.Trim(target, "0123456789-") == ""
}
