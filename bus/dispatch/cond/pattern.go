package cond

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// maxPattern bounds the instructions of a compiled pattern.
const maxPattern = 256

// patterns rejects patterns of matches that are not literals, do not compile, or are too
// large.
type patterns struct{}

// Name returns the validator's name for CEL.
func (patterns) Name() string { return "hookfabric.patterns" }

// Validate checks every call of matches: text.matches(pattern), or matches(text,
// pattern).
func (patterns) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher("matches")) {
		args := call.AsCall().Args()
		if len(args) == 0 {
			continue
		}
		last := args[len(args)-1]
		if text, ok := literal(last); !ok {
			issues.ReportErrorAtID(last.ID(), patternMark+"must be a string literal")
		} else if _, err := compilePattern(text); err != nil {
			issues.ReportErrorAtID(last.ID(), patternMark+"%v", err)
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// pattern is a compiled pattern, the number of its instructions, and the literal prefix
// of all its matches.
type pattern struct {
	*regexp.Regexp
	length uint64
	prefix string
}

func compilePattern(text string) (pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, fmt.Errorf("is not valid RE2: %w", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxPattern {
		return pattern{}, fmt.Errorf("is too large an RE2 expression")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, fmt.Errorf("is not valid RE2: %w", err)
	}
	prefix, _ := re.LiteralPrefix()
	return pattern{re, uint64(len(prog.Inst)), prefix}, nil
}

// compiled compiles the patterns of matches with the condition, and bounds their work.
func (c *costs) compiled(overload string) *interpreter.RegexOptimization {
	return &interpreter.RegexOptimization{
		Function: "matches", OverloadID: overload, RegexIndex: 1,
		Factory: func(call interpreter.InterpretableCall, text string) (interpreter.InterpretableCall, error) {
			p, err := compilePattern(text)
			if err != nil {
				return nil, err
			}
			c.patterns[text] = p
			return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), p.matches), nil
		},
	}
}

func (p pattern) matches(args ...ref.Val) ref.Val {
	s, ok := args[0].(types.String)
	if !ok {
		return types.NoSuchOverloadErr()
	}
	if err := tooMuch("matches", p.work(string(s))); err != nil {
		return err
	}
	return types.Bool(p.MatchString(string(s)))
}

// work returns the work of matching the pattern against a text. Up to the first
// occurrence of the prefix, only the prefix is searched for.
func (p pattern) work(text string) uint64 {
	from := strings.Index(text, p.prefix)
	if from < 0 {
		return uint64(len(text)) / 8
	}
	return uint64(from)/8 + uint64(len(text)-from+1)*p.length
}
