package cond

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

const (
	// costLimit bounds one evaluation: about the steps of CEL that it may take. A
	// condition stands on the path of a call; what needs more belongs into a hook.
	costLimit = 1 << 14
	// maxWork bounds a single call of a function, before it is called: its cost
	// would only be known afterwards. A unit is about a byte that is looked at.
	maxWork = 1 << 20
	// unit is how much work costs as much as one step.
	unit = maxWork / costLimit
	// zone is the work of finding a time zone by its name, in files.
	zone = 100 * unit
	// maxPattern bounds the instructions of a compiled pattern.
	maxPattern = 256
)

// works says how much work a call is, by function: those that look at all of a
// text, or at all of one list for each item of another.
var works = map[string]func(args []ref.Val) uint64{
	"contains":        func(a []ref.Val) uint64 { return (length(a, 0) + length(a, 1)) / 8 },
	"size":            func(a []ref.Val) uint64 { return length(a, 0) / 2 },
	"lowerAscii":      func(a []ref.Val) uint64 { return length(a, 0) * 8 },
	"upperAscii":      func(a []ref.Val) uint64 { return length(a, 0) * 8 },
	"trim":            func(a []ref.Val) uint64 { return length(a, 0) },
	"charAt":          func(a []ref.Val) uint64 { return length(a, 0) * 4 },
	"substring":       func(a []ref.Val) uint64 { return length(a, 0) * 4 },
	"split":           func(a []ref.Val) uint64 { return length(a, 0) + 32*pieces(a) },
	"replace":         func(a []ref.Val) uint64 { return length(a, 0) + pieces(a)*(16+length(a, 2)) },
	"join":            func(a []ref.Val) uint64 { return 32*deep(a, 0) + items(a, 0)*length(a, 1) },
	"indexOf":         func(a []ref.Val) uint64 { return length(a, 0) * (2 + length(a, 1)) },
	"lastIndexOf":     func(a []ref.Val) uint64 { return length(a, 0) * (2 + length(a, 1)) },
	"sets.contains":   pairs,
	"sets.intersects": pairs,
	"sets.equivalent": func(a []ref.Val) uint64 { return 2 * pairs(a) },
}

// light says the same of what needs no bound before it is called, and is not
// as much work as its arguments are long.
var light = map[string]func(args []ref.Val) uint64{
	"startsWith": func(a []ref.Val) uint64 { return length(a, 1) / 8 },
	"endsWith":   func(a []ref.Val) uint64 { return length(a, 1) / 8 },
	"_==_":       compared,
	"_!=_":       compared,
	"@in":        func(a []ref.Val) uint64 { return 32 * deep(a, 1) },
}

// pairs: every item of one list may be compared with every item of the other.
func pairs(a []ref.Val) uint64 { return 32 * deep(a, 0) * items(a, 1) }

func compared(a []ref.Val) uint64 {
	return min(length(a, 0), length(a, 1))/8 + 32*min(deep(a, 0), deep(a, 1))
}

// pieces counts how often a text holds another. Of one that is too long anyway
// it counts nothing.
func pieces(a []ref.Val) uint64 {
	text, _ := a[0].(types.String)
	if len(text) > maxWork {
		return 0
	}
	part, _ := a[1].(types.String)
	return uint64(strings.Count(string(text), string(part)))
}

// length of a text or of bytes; 0: the argument is neither.
func length(args []ref.Val, i int) uint64 {
	if i < len(args) {
		switch v := args[i].(type) {
		case types.String:
			return uint64(len(v))
		case types.Bytes:
			return uint64(len(v))
		}
	}
	return 0
}

// items counts those of a list, or the fields of a map.
func items(args []ref.Val, i int) uint64 {
	if n, ok := args[i].(traits.Sizer); ok && length(args, i) == 0 {
		size, _ := n.Size().(types.Int)
		return uint64(size)
	}
	return 0
}

// deep counts all that is in a list or a map.
func deep(args []ref.Val, i int) uint64 {
	if n := items(args, i); n > 0 {
		return max(n, within(args[i].Value()))
	}
	return 0
}

// within counts what is in a value, with long texts as several.
func within(v any) (n uint64) {
	switch v := v.(type) {
	case string:
		return uint64(len(v)) / 256
	case []any:
		for _, x := range v {
			n += 1 + within(x)
		}
	case map[string]any:
		for _, x := range v {
			n += 1 + within(x)
		}
	case []ref.Val:
		for _, x := range v {
			n += 1 + within(x.Value())
		}
	}
	return n
}

// tooMuch is what a call comes to that would be too much work, or nil.
func tooMuch(function string, work uint64) ref.Val {
	if work <= maxWork {
		return nil
	}
	return types.NewErr("%s would be too much work on something so large", function)
}

// costs counts calls by their work.
type costs struct {
	patterns map[string]pattern // of the condition
}

// CallCost is what a call cost. CEL would count by the overload of a function,
// which is not known before the type of a field is.
func (c *costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	n := 1 + c.work(function, args)/unit
	return &n
}

func (c *costs) work(function string, args []ref.Val) (n uint64) {
	if work := works[function]; work != nil {
		return work(args)
	}
	if work := light[function]; work != nil {
		return work(args)
	}
	if strings.HasPrefix(function, "get") && len(args) == 2 {
		return zone
	}
	if function == "matches" {
		text, _ := args[1].(types.String)
		return c.patterns[string(text)].work(length(args, 0))
	}
	for i := range args {
		n += length(args, i)
	}
	return n
}

// sizes leaves sizes unknown: what counts is the least a condition must cost.
type sizes struct{}

// EstimateCallCost leaves functions to CEL.
func (sizes) EstimateCallCost(_, _ string, _ *cost.AstNode, _ []cost.AstNode) *cost.CallEstimate {
	return nil
}

// EstimateSize knows no size.
func (sizes) EstimateSize(cost.AstNode) *cost.SizeEstimate { return nil }

// guard puts the bound of work before each call of a function that works knows.
type guard map[string]functions.FunctionOp // by overload, and by function

func newGuard(env *cel.Env) (guard, error) {
	g := guard{}
	declared := env.Functions()
	for name := range works {
		bindings, err := declared[name].Bindings()
		if err != nil {
			return nil, fmt.Errorf("the function %s: %w", name, err)
		}
		for _, b := range bindings {
			g[b.Operator] = implementation(b)
		}
	}
	return g, nil
}

func implementation(b *functions.Overload) functions.FunctionOp {
	return func(args ...ref.Val) ref.Val {
		switch {
		case len(args) == 1 && b.Unary != nil:
			return b.Unary(args[0])
		case len(args) == 2 && b.Binary != nil:
			return b.Binary(args[0], args[1])
		case b.Function != nil:
			return b.Function(args...)
		}
		return types.NoSuchOverloadErr()
	}
}

func (g guard) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || works[call.Function()] == nil {
		return i, nil
	}
	name, impl := call.Function(), g[call.OverloadID()]
	if impl == nil {
		impl = g[name]
	}
	if impl == nil {
		return nil, fmt.Errorf("the function %s has no implementation", name)
	}
	return interpreter.NewCall(call.ID(), name, call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if err := tooMuch(name, works[name](args)); err != nil {
			return err
		}
		return impl(args...)
	}), nil
}

// patterns refuses patterns of matches that are no texts in the condition, can
// not be compiled, or are too large.
type patterns struct{}

// Name tells it from other validators.
func (patterns) Name() string { return "hookfabric.patterns" }

// Validate looks at every call of matches: text.matches(pattern), or matches(text, pattern).
func (patterns) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher("matches")) {
		args := call.AsCall().Args()
		if len(args) == 0 {
			continue
		}
		last := args[len(args)-1]
		if text, ok := literal(last); !ok {
			issues.ReportErrorAtID(last.ID(), patternMark+"is not a text in the condition itself")
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

// pattern is a compiled pattern and how many instructions it has.
type pattern struct {
	*regexp.Regexp
	length uint64
}

func compilePattern(text string) (pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, fmt.Errorf("is no regular expression of RE2: %w", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxPattern {
		return pattern{}, fmt.Errorf("is too large a regular expression")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, fmt.Errorf("is no regular expression of RE2: %w", err)
	}
	return pattern{re, uint64(len(prog.Inst))}, nil
}

// compiled compiles the patterns of matches when the condition is compiled, and
// bounds their work.
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
	if err := tooMuch("matches", p.work(uint64(len(s)))); err != nil {
		return err
	}
	return types.Bool(p.MatchString(string(s)))
}

// work of looking for the pattern in a text of n bytes.
func (p pattern) work(n uint64) uint64 { return 8 * (n + 1) * p.length }
