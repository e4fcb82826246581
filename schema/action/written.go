package action

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// written returns the text of a word as in the script, without quotes. Known variables are replaced.
func (w *walker) written(s *scope, world *world, parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(w.written(s, world, p.Parts))
		case *syntax.ParamExp:
			b.WriteString(writtenParameter(world, p))
		case *syntax.CmdSubst:
			var out strings.Builder
			if w.output(s)(&out, p) == nil {
				b.WriteString(strings.TrimRight(out.String(), "\n"))
				continue
			}
			b.WriteString("$(…)")
		case *syntax.ArithmExp:
			b.WriteString("$((…))")
		case *syntax.ProcSubst:
			b.WriteString(p.Op.String() + "…)")
		case *syntax.ExtGlob:
			b.WriteString(p.Op.String() + p.Pattern.Value + ")")
		case *syntax.BraceExp:
			b.WriteString("{…}")
		}
		if b.Len() > maxField {
			return b.String()[:maxField]
		}
	}
	return b.String()
}

// writtenParameter returns the value of a simple parameter if it is known, and otherwise its name.
func writtenParameter(world *world, p *syntax.ParamExp) string {
	if p.Param == nil {
		return "$"
	}
	simple := p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Length && !p.Excl
	if v, known := world.value(p.Param.Value); simple && known && v.Set && v.Kind == expand.String {
		return v.Str
	}
	return "$" + p.Param.Value
}

// unescaped removes backslashes from a literal.
func unescaped(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
